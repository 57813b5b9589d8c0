#include "zmq/system.h"

#include "zmq/publisher.h"
#include "zmq/sockets.h"
#include "zmq/subscriber.h"

namespace hydra {

std::map<std::string, std::string> ZmqSystem::versions() const {
    int major = 0;
    int minor = 0;
    int patch = 0;
    zmq_version(&major, &minor, &patch);
    return {{"libzmq", std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch)}};
}

void ZmqSystem::check(Role role) const {
    if (options_.secure) {
        static_cast<void>(read_data_keys(role));
    }
}

std::unique_ptr<PublisherTransport> ZmqSystem::open_publisher(zmq::context_t& context) const {
    return std::make_unique<ZmqPublisher>(context, options_);
}

std::unique_ptr<SubscriberTransport> ZmqSystem::open_subscriber(zmq::context_t& context) const {
    return std::make_unique<ZmqSubscriber>(context, options_);
}

}  // namespace hydra
