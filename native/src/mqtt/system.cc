#include "mqtt/system.h"

#include <mosquitto.h>

#include "mqtt/access.h"
#include "mqtt/publisher.h"
#include "mqtt/subscriber.h"

namespace hydra {
namespace {

// Opens nothing and starts no thread, so a parent may still fork.
void begin() {
    static const int once = mosquitto_lib_init();
    static_cast<void>(once);
}

}  // namespace

std::map<std::string, std::string> MqttSystem::versions() const {
    int major = 0;
    int minor = 0;
    int revision = 0;
    mosquitto_lib_version(&major, &minor, &revision);
    return {{"libmosquitto",
             std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(revision)}};
}

bool MqttSystem::has_tls() const {
    return mosquitto_has_tls();
}

std::unique_ptr<PublisherTransport> MqttSystem::open_publisher(zmq::context_t&) const {
    begin();
    return std::make_unique<MqttPublisher>();
}

std::unique_ptr<SubscriberTransport> MqttSystem::open_subscriber(zmq::context_t&) const {
    begin();
    return std::make_unique<MqttSubscriber>();
}

}  // namespace hydra
