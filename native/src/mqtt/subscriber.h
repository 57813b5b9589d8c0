// A libmosquitto client that is subscribed to the topic of every publisher, or to numbered topics.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/transport.h"
#include "mqtt/connection.h"
#include "mqtt/control_messages.h"

namespace hydra {

class MqttSubscriber final : public SubscriberTransport {
  public:
    MqttSubscriber() = default;

    void choose(const TopicFilter& filter) override { chosen_ = filter; }
    void configure(const Configure& command) override;
    bool receive(Batch& batch) override;
    [[nodiscard]] int wake_fd() const override { return connection_ == nullptr ? -1 : connection_->fd(); }
    std::int64_t tend(std::int64_t now_ns, bool between_steps) override;
    [[nodiscard]] std::size_t connects_aside(const Configure&) const override { return 64; }
    void connect(const Configure& command, std::int64_t limit_ns) override;
    [[nodiscard]] ConnectPhases phases() const override;
    // Not before the last messages of the connection are taken: the next one has another transport.
    [[nodiscard]] bool lost() const override {
        return connection_ != nullptr && !connection_->lost().empty() && kept_.empty();
    }
    void reconnect() override;
    void leave() override;
    void inherit(const SubscriberTransport& earlier) override;
    [[nodiscard]] SystemObject report_system() const override;

  private:
    void connect();
    void disconnect();
    // Why the first connection of the step that was lost was lost, or "".
    [[nodiscard]] std::string lost_why() const {
        return lost_why_.empty() && connection_ != nullptr ? connection_->lost() : lost_why_;
    }
    [[nodiscard]] bool was_silent() const {
        return was_silent_ || (connection_ != nullptr && connection_->was_silent());
    }
    void take(const void* payload, std::size_t size);

    std::string name_;
    MqttStep step_;
    TopicFilter chosen_;
    std::vector<std::string> filters_;
    // Messages that one read released beyond the batch: an answer of QoS 2 or a record of TLS may have
    // several.
    std::deque<std::pair<Header, std::size_t>> kept_;
    Batch* batch_ = nullptr;  // set only while a batch is filled
    std::int64_t limit_ns_ = MqttConnection::kAnswerWithinNs;
    std::unique_ptr<MqttConnection> connection_;
    std::uint32_t epoch_ = 0;
    std::string lost_why_;     // of an earlier connection of the step; "": none was lost
    bool was_silent_ = false;  // whether one was lost by its own silence
};

}  // namespace hydra
