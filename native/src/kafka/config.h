// A client's configuration as librdkafka properties, so a comparison shows whether anything has changed.
#pragma once

#include "kafka/handles.h"
#include "kafka/properties.h"
#include "kafka/settings.h"

namespace hydra {

// TransportError: a property of the user is unknown, or only Hydra may set it.
Properties producer_config(const KafkaSettings& kafka, std::uint64_t message_size, std::uint64_t keys = 0);
Properties consumer_config(const KafkaSettings& kafka);

// A client with this configuration. `prepare` sets what is not a property. TransportError: librdkafka rejects
// it.
KafkaHandle open_kafka(rd_kafka_type_t type, const Properties& config,
                       void (*prepare)(rd_kafka_conf_t*, void*), void* opaque);

KafkaTopicHandle open_topic(rd_kafka_t* kafka, const std::string& name, void* opaque = nullptr);

}  // namespace hydra
