// A libnats publisher: core, or to a stream, whose answers are the account.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/transport.h"
#include "nats/ack_inbox.h"
#include "nats/connection.h"

namespace hydra {

class NatsPublisher final : public PublisherTransport {
  public:
    NatsPublisher();
    ~NatsPublisher() override;
    NatsPublisher(const NatsPublisher&) = delete;
    NatsPublisher& operator=(const NatsPublisher&) = delete;

    std::string configure(const Configure& command) override;
    void probe(const Header& header) override;
    [[nodiscard]] bool marks_end() const override { return !to_stream(); }
    std::size_t send(const Chunk& chunk) override;
    void poll() override { answers_->drain(); }
    [[nodiscard]] int wake_fd() const override { return answers_->fd(); }
    [[nodiscard]] std::optional<std::uint64_t> framed_bytes(std::uint64_t message_size) const override;
    bool flush(double timeout_s) override;
    void close() override;
    std::optional<Delivery> delivery() override;
    [[nodiscard]] std::optional<std::uint64_t> accepted() const override;
    [[nodiscard]] FirstReason refused() const override;
    [[nodiscard]] ConnectionLosses losses() const override { return connection_.losses(); }
    [[nodiscard]] SystemObject report_system() const override;

  private:
    [[nodiscard]] bool to_stream() const { return step_ && !step_->stream.empty(); }
    [[nodiscard]] bool answered() const { return to_stream() && step_->publish_acks; }
    void subscribe_to_answers();
    void give_up_answers();
    // `reply`: where the stream answers; null: it does not.
    bool publish(const std::string& subject, const char* reply, const char* message, std::uint64_t size);

    NatsConnection connection_;
    ReplySubject reply_;
    NatsSubscription answering_;  // of the connection, to all replies; null before the first step to a stream
    std::optional<NatsStep> step_;
    std::vector<std::string> subjects_;  // by topic
    std::uint32_t signalled_ = 1;        // topics with probes and end markers
    std::uint64_t written_ = 0;          // messages that the library took, with probes
    std::uint64_t disconnects_ = 0;      // those after which answers were given up
    std::int64_t rested_ns_ = 0;         // when the next probes of several topics may be sent
    Answers* answers_;
};

}  // namespace hydra
