// The stream's answers to one publisher, passed from libnats' thread to the client's thread.
#pragma once

#include <nats/nats.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/acceptance.h"
#include "common/ack_ledger.h"
#include "common/messages/parts.h"

namespace hydra {

// The reply subject of each message, INBOX.EPOCH.SEQUENCE: the answer names its message, so that nothing of a
// message is kept until then.
class ReplySubject {
  public:
    explicit ReplySubject(const std::string& inbox = "") : text_(inbox + '.'), inbox_(text_.size()) {}

    // Until the next call.
    const char* of(std::uint32_t epoch, std::uint64_t sequence);
    // All of them.
    [[nodiscard]] std::string pattern() const { return text_.substr(0, inbox_) + ">"; }

    struct Message {
        std::uint32_t epoch = kProbeEpoch;
        std::uint64_t sequence = 0;
    };
    static Message read(std::string_view subject);

  private:
    std::string text_;
    std::size_t inbox_;  // the length of its name, with the dot
};

// Why a stream answers that it did not store the message; none: it did.
std::optional<FirstReason> refusal(natsMsg* answer);
// The same of an answer with an error, by the server's code and its text.
FirstReason refusal(int code, const std::string& description);

class Answers {
  public:
    Answers();
    ~Answers();
    Answers(const Answers&) = delete;
    Answers& operator=(const Answers&) = delete;

    // Called by libnats' thread: the stream accepted this message of this epoch, or did not.
    // `refusal`: why not.
    void put(std::uint32_t epoch, std::uint64_t sequence, const std::optional<FirstReason>& refusal = {});

    // Begins an epoch: answers to earlier messages are ignored.
    void begin(std::uint32_t epoch);
    // The library accepted this many messages, or a probe.
    void accept(std::uint64_t count) {
        ledger_.accept(count);
        expected_ += count;
    }
    void accept_probe();
    // The connection was lost: the messages until now, and the probes, may never be answered. Answers that
    // arrive nevertheless are entered.
    void give_up();
    // Enters the answers that have arrived.
    void drain();
    // Drains when this many answers have arrived, or one to a probe, waiting for at most this long. Returns
    // whether any arrived.
    bool wait(std::int64_t timeout_ns, std::size_t answers = 1);

    // Why messages of the epoch were not accepted.
    [[nodiscard]] FirstReason refused() const {
        const std::lock_guard lock(mutex_);
        return refused_;
    }
    [[nodiscard]] const AckLedger& ledger() const { return ledger_; }
    // The messages without an answer that were not given up.
    [[nodiscard]] std::uint64_t expected() const { return expected_; }
    [[nodiscard]] std::uint64_t probes() const;
    [[nodiscard]] std::int64_t last_ack_ns() const { return last_ack_ns_; }  // CLOCK_MONOTONIC; 0: none yet
    // Watched edge-triggered, so it is never read.
    [[nodiscard]] int fd() const { return fd_; }

  private:
    struct Answer {
        std::uint64_t sequence;
        bool failed;
    };

    void enter();

    int fd_;
    mutable std::mutex mutex_;
    std::condition_variable came_;
    std::vector<Answer> put_;
    FirstReason refused_;
    std::uint32_t epoch_ = 0;
    std::uint64_t probes_ = 0;
    std::size_t awaited_ = 0;  // answers for which the client waits; 0: it does not wait
    // Used only by the client's thread.
    std::vector<Answer> taken_;
    AckLedger ledger_;
    std::uint64_t given_up_ = 0;  // the messages before this one are not expected
    std::uint64_t expected_ = 0;
    std::int64_t last_ack_ns_ = 0;
};

}  // namespace hydra
