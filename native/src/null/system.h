// Clients without a system: publishers whose messages are discarded, and subscribers that make the messages
// that they receive. These clients show the limit of the client's own code (hydra ceiling).
#pragma once

#include <memory>

#include "common/system.h"

namespace hydra {

class NullSystem final : public System {
  public:
    [[nodiscard]] std::string name() const override { return "null"; }
    [[nodiscard]] std::map<std::string, std::string> versions() const override { return {}; }
    [[nodiscard]] std::unique_ptr<PublisherTransport> open_publisher(zmq::context_t& context) const override;
    [[nodiscard]] std::unique_ptr<SubscriberTransport> open_subscriber(
        zmq::context_t& context) const override;
};

}  // namespace hydra
