#include "null/system.h"

#include "null/transports.h"

namespace hydra {

std::unique_ptr<PublisherTransport> NullSystem::open_publisher(zmq::context_t&) const {
    return std::make_unique<NullPublisher>();
}

std::unique_ptr<SubscriberTransport> NullSystem::open_subscriber(zmq::context_t&) const {
    return std::make_unique<NullSubscriber>();
}

}  // namespace hydra
