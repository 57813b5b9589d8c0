// librdkafka's objects with an owner.
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>

namespace hydra {

template <auto destroy>
struct Destroy {
    template <typename T>
    void operator()(T* it) const {
        destroy(it);
    }
};

// A member has left its consumer group before, if the group allowed it (member.h); other consumers are in
// none.
inline void destroy_kafka(rd_kafka_t* kafka) {
    rd_kafka_destroy_flags(kafka, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

using KafkaConf = std::unique_ptr<rd_kafka_conf_t, Destroy<rd_kafka_conf_destroy>>;
using KafkaHandle = std::unique_ptr<rd_kafka_t, Destroy<destroy_kafka>>;
using KafkaTopicHandle = std::unique_ptr<rd_kafka_topic_t, Destroy<rd_kafka_topic_destroy>>;
using KafkaQueue = std::unique_ptr<rd_kafka_queue_t, Destroy<rd_kafka_queue_destroy>>;
using KafkaEvent = std::unique_ptr<rd_kafka_event_t, Destroy<rd_kafka_event_destroy>>;
using KafkaPartitions =
    std::unique_ptr<rd_kafka_topic_partition_list_t, Destroy<rd_kafka_topic_partition_list_destroy>>;

}  // namespace hydra
