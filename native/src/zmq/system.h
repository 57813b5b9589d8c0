// Raw ZMQ, as a system of this program.
#pragma once

#include "common/system.h"
#include "zmq/options.h"

namespace hydra {

class ZmqSystem final : public System {
  public:
    [[nodiscard]] std::string name() const override { return "zmq"; }
    [[nodiscard]] std::map<std::string, std::string> versions() const override;
    void add_options(CLI::App& app) override { add_zmq_options(app, options_); }
    void check(Role role) const override;
    [[nodiscard]] int io_threads() const override { return options_.io_threads; }
    [[nodiscard]] std::unique_ptr<PublisherTransport> open_publisher(zmq::context_t& context) const override;
    [[nodiscard]] std::unique_ptr<SubscriberTransport> open_subscriber(
        zmq::context_t& context) const override;

  private:
    ZmqOptions options_;
};

}  // namespace hydra
