// Subscribers of raw ZMQ that speak ZMTP themselves, as a system of this program. These subscribers show what
// publishers can do, and by comparison what libzmq's subscribers cost.
#pragma once

#include <memory>

#include "common/system.h"
#include "zmtp/subscriber.h"

namespace hydra {

class ZmtpSystem final : public System {
  public:
    [[nodiscard]] std::string name() const override { return "zmtp"; }
    [[nodiscard]] std::string implementation() const override { return "zmtp"; }
    [[nodiscard]] bool offers(Role role) const override { return role == Role::subscriber; }
    [[nodiscard]] std::map<std::string, std::string> versions() const override { return {{"zmtp", "3.0"}}; }
    void add_options(CLI::App& app) override;
    [[nodiscard]] std::int64_t gather_ns(std::size_t subscribers) const override;
    [[nodiscard]] std::unique_ptr<PublisherTransport> open_publisher(zmq::context_t& context) const override;
    [[nodiscard]] std::unique_ptr<SubscriberTransport> open_subscriber(
        zmq::context_t& context) const override;

  private:
    int rcvbuf_bytes_ = 0;  // 0 leaves the size to the kernel
    // The state of this process, made after the fork.
    mutable std::unique_ptr<ZmtpProcess> process_;
};

}  // namespace hydra
