// A subscription with its inbox: core, or an ephemeral consumer of a stream, push or pull.
#pragma once

#include <memory>
#include <thread>

#include "nats/control_messages.h"
#include "nats/handles.h"
#include "nats/inbox.h"

namespace hydra {

class NatsFeed {
  public:
    // TransportError: the server rejects it.
    NatsFeed(natsConnection* connection, const NatsStep& step);
    ~NatsFeed();
    NatsFeed(const NatsFeed&) = delete;
    NatsFeed& operator=(const NatsFeed&) = delete;

    [[nodiscard]] Inbox& inbox() const { return *inbox_; }
    // Messages that the library has dropped in all.
    [[nodiscard]] std::uint64_t dropped() const;

  private:
    void subscribe(const NatsStep& step);
    void consume(const NatsStep& step);
    void fetch(const NatsStep& step) const;

    natsConnection* connection_;
    std::shared_ptr<Inbox> inbox_;  // libnats' threads share it
    JetStreamHandle stream_;
    NatsSubscriptionHandle subscription_;
    std::thread fetching_;  // for a pull consumer
};

}  // namespace hydra
