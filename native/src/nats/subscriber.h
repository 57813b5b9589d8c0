// A libnats subscription, or a consumer of a stream, from the message that the command names.
#pragma once

#include <memory>
#include <optional>

#include "common/transport.h"
#include "nats/connection.h"
#include "nats/consumer.h"

namespace hydra {

class NatsSubscriber final : public SubscriberTransport {
  public:
    void choose(const TopicFilter& filter) override { chosen_ = filter; }
    void configure(const Configure& command) override;
    bool receive(Batch& batch) override;
    [[nodiscard]] int wake_fd() const override { return consumer_ == nullptr ? -1 : consumer_->inbox().fd(); }
    [[nodiscard]] std::size_t connects_aside(const Configure& command) const override;
    void connect(const Configure& command, std::int64_t limit_ns) override;
    [[nodiscard]] ConnectPhases phases() const override {
        return {.connected_ns = connection_.connected_ns(), .subscribed = true};
    }
    [[nodiscard]] std::vector<Disconnection> disconnections() const override {
        return connection_.disconnections();
    }
    void reconnect() override;
    void leave() override;
    std::uint64_t undrained(const SystemObject& system) override;
    [[nodiscard]] SystemObject report_system() const override;

  private:
    void open(const NatsStep& step);
    [[nodiscard]] std::uint64_t position() const;

    NatsConnection connection_;
    std::int64_t within_ms_ = NatsConnection::kConnectWithinMs;  // the time limit of a new connection
    std::unique_ptr<NatsFeed> consumer_;                         // ends before its connection
    std::optional<NatsStep> step_;
    TopicFilter chosen_;                // of the next consumer
    TopicFilter topics_;                // of the consumer
    bool returns_ = false;              // whether it connects again after a loss, so its consumer is kept
    std::uint64_t dropped_before_ = 0;  // messages dropped by this consumer in earlier steps
};

}  // namespace hydra
