// Why a broker or librdkafka did not accept a message. (Python: hydra/kafkatest/refusal_reasons.py.)
#pragma once

#include <librdkafka/rdkafka.h>

#include "common/acceptance.h"

namespace hydra {

// The word for an error. If a broker delayed the producer because of a quota, that is why its messages timed
// out.
inline const char* reason_of(rd_kafka_resp_err_t error, bool throttled) {
    switch (error) {
        case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
        case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
            return reason::kTooLarge;
        case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
        case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
        case RD_KAFKA_RESP_ERR__TIMED_OUT:
            return throttled ? reason::kQuota : reason::kTimeout;
        case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
        case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            return reason::kNoReplicas;
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return reason::kNotAuthorized;
        case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
            return reason::kNoSpace;
        case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
        case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
        case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
            return reason::kNoDestination;
        case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
        case RD_KAFKA_RESP_ERR__TRANSPORT:
        case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
            return reason::kConnectionLost;
        default:
            // librdkafka before 1.9 has no name for THROTTLING_QUOTA_EXCEEDED.
            return static_cast<int>(error) == 89 ? reason::kQuota : reason::kOther;
    }
}

}  // namespace hydra
