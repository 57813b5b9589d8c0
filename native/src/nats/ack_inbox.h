// The stream's answers to one publisher, from libnats' thread to the client's.
#pragma once

#include <nats/nats.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "common/ack_ledger.h"
#include "common/header.h"

namespace hydra {

class Answers {
  public:
    Answers();
    ~Answers();
    Answers(const Answers&) = delete;
    Answers& operator=(const Answers&) = delete;

    // From libnats' thread: the stream took the message with this header, or did not.
    void put(const Header& header, bool failed);

    // A new epoch: what was sent before is none of its business any more.
    void begin(std::uint32_t epoch);
    // The library accepted so many messages, or a probe.
    void accept(std::uint64_t count) { ledger_.accept(count); }
    void accept_probe();
    // Enters what has come.
    void drain();
    // Drains when something comes, waiting for at most so long. Whether something came.
    bool wait(std::int64_t timeout_ns);

    [[nodiscard]] const AckLedger& ledger() const { return ledger_; }
    [[nodiscard]] std::uint64_t probes() const;
    [[nodiscard]] std::int64_t last_ack_ns() const { return last_ack_ns_; }  // CLOCK_MONOTONIC; 0: none yet
    // Watched for edges, so it is never read.
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
    std::uint32_t epoch_ = 0;
    std::uint64_t probes_ = 0;
    // The client's own.
    std::vector<Answer> taken_;
    AckLedger ledger_;
    std::int64_t last_ack_ns_ = 0;
};

}  // namespace hydra
