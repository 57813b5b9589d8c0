// A libmosquitto client that publishes to its own topic, or to several numbered ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/ack_ledger.h"
#include "common/transport.h"
#include "mqtt/connection.h"
#include "mqtt/control_messages.h"

namespace hydra {

class MqttPublisher final : public PublisherTransport {
  public:
    MqttPublisher();
    ~MqttPublisher() override;
    MqttPublisher(const MqttPublisher&) = delete;
    MqttPublisher& operator=(const MqttPublisher&) = delete;

    std::string configure(const Configure& command) override;
    void probe(const Header& header) override;
    [[nodiscard]] bool marks_end() const override { return true; }
    std::size_t send(const Chunk& chunk) override;
    void poll() override;
    [[nodiscard]] int wake_fd() const override { return epoll_; }
    [[nodiscard]] std::optional<std::uint64_t> framed_bytes(std::uint64_t message_size) const override;
    bool flush(double timeout_s) override;
    std::optional<Delivery> delivery() override;
    [[nodiscard]] std::optional<std::uint64_t> accepted() const override;
    [[nodiscard]] FirstReason refused() const override;
    [[nodiscard]] ConnectionLosses losses() const override;
    [[nodiscard]] SystemObject report_system() const override;
    void close() override;

  private:
    [[nodiscard]] bool has_room();
    [[nodiscard]] bool under_way() const {
        return connection_->unsent() || connection_->asked() || waiting_ > 0;
    }
    void connect(std::int64_t answer_within_ns = MqttConnection::kAnswerWithinNs);
    void come_back();
    void name_topics(Id publisher);
    void send_signals();
    void note(int message_id, std::int64_t sequence);
    void answer(int message_id, int code);
    void reject(std::uint64_t sequence, const char* why, const std::string& words);

    int epoll_;  // has the socket, which changes: the loop waits for this descriptor
    MqttStep step_;
    std::unique_ptr<MqttConnection> connection_;
    std::vector<std::string> topics_;  // topics of publisher_ by number; empty before it is known
    std::vector<std::string> signals_;
    std::uint32_t topic_count_ = 1;
    std::uint32_t signalled_ = 1;
    Header signal_{};                // the last probe or end marker,
    std::size_t next_signal_ = 0;    // and the first of signals_ that does not have it yet
    std::int64_t signalled_ns_ = 0;  // when the last round of several signals began
    std::int64_t rested_ns_ = 0;     // when the next one may begin
    Id publisher_ = 0;
    bool retain_ = false;
    bool returns_ = false;      // whether it connects again if the connection is lost in the step
    ConnectionLosses earlier_;  // of earlier connections in the step
    bool was_silent_ = false;   // whether one of them was lost by its own silence
    std::int64_t again_at_ns_ = 0;
    std::vector<std::int64_t> sequences_;  // by message id; see the constants in publisher.cc
    std::uint64_t waiting_ = 0;            // message ids without an answer
    AckLedger ledger_;
    FirstReason refused_;
    bool judges_ = false;  // whether a message of QoS 0 was rejected: the ledger then has all of them
    std::int64_t last_ack_ns_ = 0;
};

}  // namespace hydra
