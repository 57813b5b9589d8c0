#include "kafka/kinds.h"

#include <librdkafka/rdkafka.h>

#include "kafka/publisher.h"
#include "kafka/subscriber.h"

namespace hydra {

void add_kafka_kinds(std::vector<Kind>& kinds) {
    const std::map<std::string, std::string> versions = {{"librdkafka", rd_kafka_version_str()}};

    Kind publisher{.name = "kafka-pub", .role = Role::publisher, .versions = versions};
    publisher.open_publisher = [](zmq::context_t&, const Options&) {
        return std::make_unique<KafkaPublisher>();
    };
    kinds.push_back(std::move(publisher));

    Kind subscriber{.name = "kafka-sub", .role = Role::subscriber, .versions = versions};
    subscriber.open_subscriber = [](zmq::context_t&, const Options&) {
        return std::make_unique<KafkaSubscriber>();
    };
    kinds.push_back(std::move(subscriber));
}

}  // namespace hydra
