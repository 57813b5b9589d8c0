// A SUB socket connected to every publisher.
#pragma once

#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/transport.h"
#include "zmq/options.h"

namespace hydra {

class ZmqSubscriber final : public SubscriberTransport {
  public:
    ZmqSubscriber(zmq::context_t& context, const ZmqOptions& options)
        : context_(context), options_(options) {}

    void configure(const Configure& command) override;
    bool receive(Batch& batch) override;
    [[nodiscard]] int wake_fd() const override { return fd_; }
    void reconnect() override;
    void leave() override;

  private:
    void connect();

    zmq::context_t& context_;
    ZmqOptions options_;
    zmq::socket_t socket_;
    int fd_ = -1;
    int rcvhwm_ = 0;
    std::vector<PublisherEndpoint> publishers_;
};

}  // namespace hydra
