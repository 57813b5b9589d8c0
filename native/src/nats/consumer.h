// Subscriptions with their inbox: core, one for each topic, or an ephemeral consumer of a stream, push or
// pull.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nats/connection.h"
#include "nats/control_messages.h"
#include "nats/handles.h"
#include "nats/inbox.h"

namespace hydra {

// Whether one thread of libnats delivers the messages of all subscriptions: those of several subjects would
// overtake each other otherwise.
bool has_one_thread(const NatsStep& step, const TopicFilter& topics);

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
    // Whether it is a consumer of some subjects of its stream. Then the end of the stream does not show what
    // is missing, but `waiting` does: it asks the server how many of their messages have not arrived.
    [[nodiscard]] bool filters() const { return !consumer_.empty(); }
    [[nodiscard]] std::uint64_t waiting();

  private:
    void subscribe(const std::string& subject);
    void own(natsSubscription* subscription);
    void consume(const NatsStep& step, const std::vector<std::string>& subjects, bool filters, bool returns);
    [[nodiscard]] std::string made_consumer(const NatsStep& step, const std::vector<std::string>& subjects,
                                            bool returns) const;
    void delete_consumer(const std::string& consumer) const;
    void fetch(const NatsStep& step, natsSubscription* subscription) const;

    NatsConnection& connection_;
    std::shared_ptr<Inbox> inbox_;  // libnats' threads share it
    JetStreamHandle stream_;
    std::string stream_name_;
    std::string consumer_;        // of some subjects; libnats does not delete it
    std::int64_t ask_at_ns_ = 0;  // when `waiting` may ask the server again that did not answer
    std::vector<NatsSubscription> subscriptions_;
    std::thread fetching_;  // for a pull consumer
};

}  // namespace hydra
