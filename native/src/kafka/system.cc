#include "kafka/system.h"

#include <librdkafka/rdkafka.h>

#include <array>
#include <memory>
#include <string_view>

#include "kafka/publisher.h"
#include "kafka/subscriber.h"

namespace hydra {

std::map<std::string, std::string> KafkaSystem::versions() const {
    return {{"librdkafka", rd_kafka_version_str()}};
}

bool KafkaSystem::has_tls() const {
    const std::unique_ptr<rd_kafka_conf_t, decltype(&rd_kafka_conf_destroy)> conf(rd_kafka_conf_new(),
                                                                                  rd_kafka_conf_destroy);
    std::array<char, 1024> features{};
    std::size_t size = features.size();
    rd_kafka_conf_get(conf.get(), "builtin.features", features.data(), &size);
    return std::string_view(features.data()).find("ssl") != std::string_view::npos;
}

std::unique_ptr<PublisherTransport> KafkaSystem::open_publisher(zmq::context_t&) const {
    return std::make_unique<KafkaPublisher>();
}

std::unique_ptr<SubscriberTransport> KafkaSystem::open_subscriber(zmq::context_t&) const {
    return std::make_unique<KafkaSubscriber>();
}

}  // namespace hydra
