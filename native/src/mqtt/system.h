// MQTT on libmosquitto, as a system of this program.
#pragma once

#include "common/system.h"

namespace hydra {

class MqttSystem final : public System {
  public:
    [[nodiscard]] std::string name() const override { return "mqtt"; }
    [[nodiscard]] std::map<std::string, std::string> versions() const override;
    [[nodiscard]] bool has_tls() const override;
    [[nodiscard]] std::unique_ptr<PublisherTransport> open_publisher(zmq::context_t& context) const override;
    [[nodiscard]] std::unique_ptr<SubscriberTransport> open_subscriber(
        zmq::context_t& context) const override;
};

}  // namespace hydra
