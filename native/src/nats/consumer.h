// Subscriptions with their inbox: core, one for each topic, or an ephemeral consumer of a stream, push or
// pull.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nats/connection.h"
#include "nats/control_messages.h"
#include "nats/handles.h"
#include "nats/inbox.h"

namespace hydra {

class NatsFeed {
  public:
    // TransportError: the server rejects it.
    // `returns`: if the connection is lost, the server keeps the consumer until the client has another.
    NatsFeed(NatsConnection& connection, const NatsStep& step, const TopicFilter& topics, bool returns);
    ~NatsFeed();
    NatsFeed(const NatsFeed&) = delete;
    NatsFeed& operator=(const NatsFeed&) = delete;

    [[nodiscard]] Inbox& inbox() const { return *inbox_; }
    // Messages that the library has dropped in all.
    [[nodiscard]] std::uint64_t dropped() const;

  private:
    void subscribe(const std::string& subject);
    void own(natsSubscription* subscription);
    void consume(const NatsStep& step, const std::string& subject, bool returns);
    void fetch(const NatsStep& step, natsSubscription* subscription) const;

    NatsConnection& connection_;
    std::shared_ptr<Inbox> inbox_;  // libnats' threads share it
    JetStreamHandle stream_;
    std::vector<NatsSubscription> subscriptions_;
    std::thread fetching_;  // for a pull consumer
};

}  // namespace hydra
