// A libmosquitto client that publishes to its own topic.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/ack_ledger.h"
#include "common/transport.h"
#include "mqtt/control_messages.h"
#include "mqtt/session.h"

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
    [[nodiscard]] SystemObject report_system() const override;
    void close() override;

  private:
    [[nodiscard]] bool has_room();
    [[nodiscard]] bool under_way() const { return session_->unsent() || waiting_ > 0; }
    void connect();
    void name_topics(Id publisher);
    void note(int message_id, std::int64_t sequence);
    void answer(int message_id, bool refused);

    int epoll_;  // has the socket, which changes: the loop waits for this descriptor
    MqttStep step_;
    std::unique_ptr<Session> session_;
    std::string topic_;  // topic of publisher_, "" before it is known
    std::string signals_;
    Id publisher_ = 0;
    bool retain_ = false;
    std::vector<std::int64_t> sequences_;  // by message id; see the constants in publisher.cc
    std::uint64_t waiting_ = 0;            // message ids without an answer
    AckLedger ledger_;
    std::int64_t last_ack_ns_ = 0;
};

}  // namespace hydra
