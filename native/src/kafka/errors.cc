#include "kafka/errors.h"

namespace hydra {
namespace {

// Older ones send a nonce that Kafka 4 rejects (librdkafka's pull request 4895).
constexpr int kScramWithKafka4 = 0x020601ff;

// Whether a broker rejects the client's certificate, or its absence: librdkafka has no code for this alert.
bool is_of_certificate(const std::string& words) {
    const std::size_t alert = words.find(" alert ");
    return alert != std::string::npos && (words.find("certificate", alert) != std::string::npos ||
                                          words.find("unknown ca", alert) != std::string::npos);
}

int weight(rd_kafka_resp_err_t error, const std::string& words) {
    if (is_refusal(error, words)) {
        return 2;
    }
    // This error only follows from another one.
    return error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || error == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : 1;
}

// Where a connection failed, or "" if the error does not show it.
std::string layer(rd_kafka_resp_err_t error, const std::string& words) {
    if (error == RD_KAFKA_RESP_ERR__AUTHENTICATION || error == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED) {
        return "login: ";
    }
    if (error == RD_KAFKA_RESP_ERR__SSL || words.find("SSL routines") != std::string::npos) {
        return "TLS: ";
    }
    return error == RD_KAFKA_RESP_ERR__TRANSPORT || error == RD_KAFKA_RESP_ERR__RESOLVE ? "network: " : "";
}

}  // namespace

bool is_refusal(rd_kafka_resp_err_t error, const std::string& words) {
    return error == RD_KAFKA_RESP_ERR__AUTHENTICATION || error == RD_KAFKA_RESP_ERR__SSL ||
           error == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED || is_of_certificate(words);
}

std::string explained(rd_kafka_resp_err_t error, const std::string& words) {
    const std::string description = layer(error, words) + words;
    const bool scram = is_refusal(error, words) && words.find("SCRAM") != std::string::npos;
    if (!scram || rd_kafka_version() >= kScramWithKafka4) {
        return description;
    }
    return description + "; librdkafka " + rd_kafka_version_str() +
           " cannot log in to Kafka 4 with SCRAM, 2.6.1 and newer can: use --client confluent-kafka";
}

void Complaint::take(rd_kafka_resp_err_t error, const char* words) {
    if (words_.empty() || weight(error, words) >= weight(error_, words_)) {
        error_ = error;
        words_ = explained(error, words);
    }
}

bool is_group_move(rd_kafka_resp_err_t error) {
    switch (error) {
        case RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED:
        case RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST:
        case RD_KAFKA_RESP_ERR__WAIT_COORD:
        case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
        case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
        case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
        case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
        case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
        case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
        case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
            return true;
        default:
            return false;
    }
}

bool is_transient(rd_kafka_resp_err_t error) {
    switch (error) {
        case RD_KAFKA_RESP_ERR__TRANSPORT:
        case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
        case RD_KAFKA_RESP_ERR__RESOLVE:
        case RD_KAFKA_RESP_ERR__TIMED_OUT:
        case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
        case RD_KAFKA_RESP_ERR__WAIT_CACHE:
        case RD_KAFKA_RESP_ERR__PARTITION_EOF:
        case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
        case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
        case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
        case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
        case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
        case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
        case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
        case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
            return true;
        default:
            return false;
    }
}

}  // namespace hydra
