#include "nats/system.h"

#include <nats/nats.h>

#include "nats/publisher.h"
#include "nats/subscriber.h"

namespace hydra {

std::map<std::string, std::string> NatsSystem::versions() const {
    return {{"libnats", nats_GetVersion()}};
}

std::unique_ptr<PublisherTransport> NatsSystem::open_publisher(zmq::context_t&) const {
    return std::make_unique<NatsPublisher>();
}

std::unique_ptr<SubscriberTransport> NatsSystem::open_subscriber(zmq::context_t&) const {
    return std::make_unique<NatsSubscriber>();
}

}  // namespace hydra
