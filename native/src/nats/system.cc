#include "nats/system.h"

#include <nats/nats.h>

#include "nats/access.h"
#include "nats/publisher.h"
#include "nats/subscriber.h"

namespace hydra {

std::map<std::string, std::string> NatsSystem::versions() const {
    return {{"libnats", nats_GetVersion()}};
}

bool NatsSystem::has_tls() const {
    return nats_has_tls();
}

std::unique_ptr<PublisherTransport> NatsSystem::open_publisher(zmq::context_t&) const {
    return std::make_unique<NatsPublisher>();
}

std::unique_ptr<SubscriberTransport> NatsSystem::open_subscriber(zmq::context_t&) const {
    return std::make_unique<NatsSubscriber>();
}

}  // namespace hydra
