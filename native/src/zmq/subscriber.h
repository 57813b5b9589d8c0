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

    void choose(const TopicFilter& filter) override { chosen_ = filter; }
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
    TopicFilter chosen_;            // of the next connection
    TopicFilter topics_;            // of the connection
    std::size_t prefix_bytes_ = 0;  // of the topic in front of the header; 0: one topic
};

}  // namespace hydra
