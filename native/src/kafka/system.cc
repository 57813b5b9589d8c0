#include "kafka/system.h"

#include <librdkafka/rdkafka.h>

#include "kafka/publisher.h"
#include "kafka/subscriber.h"

namespace hydra {

std::map<std::string, std::string> KafkaSystem::versions() const {
    return {{"librdkafka", rd_kafka_version_str()}};
}

std::unique_ptr<PublisherTransport> KafkaSystem::open_publisher(zmq::context_t&) const {
    return std::make_unique<KafkaPublisher>();
}

std::unique_ptr<SubscriberTransport> KafkaSystem::open_subscriber(zmq::context_t&) const {
    return std::make_unique<KafkaSubscriber>();
}

}  // namespace hydra
