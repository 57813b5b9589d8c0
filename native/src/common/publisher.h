// A publisher: obeys the control channel, sends on schedule, and counts exactly what it sent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/backoff.h"
#include "common/control_client.h"
#include "common/memory_limit.h"
#include "common/options.h"
#include "common/publisher_step.h"
#include "common/transport.h"
#include "common/usage.h"
#include "common/waiter.h"

namespace hydra {

class Publisher {
  public:
    Publisher(ControlClient& control, PublisherTransport& transport, Pacing pacing, MemoryLimit memory);
    ~Publisher();

    // Obeys commands until it receives `quit`.
    void run();

  private:
    std::int64_t work(std::int64_t now_ns);
    [[nodiscard]] std::int64_t rested_ns() const;
    void send_time_series(std::vector<SecondCounts> seconds);
    void signal(std::uint64_t sequence);
    void obey(const Configure& command);
    void obey(const Start& command);
    void obey(const Stop& command);
    template <typename Other>
    void obey(const Other&) {}

    ControlClient& control_;
    PublisherTransport& transport_;
    Pacing pacing_;
    MemoryLimit memory_;
    Waiter waiter_;
    std::uint32_t epoch_ = 0;           // of the last configuration, even if it failed
    std::optional<Configure> command_;  // none before the first, and after one that failed
    std::string endpoint_;
    Backoff probes_;
    std::int64_t probed_ns_ = 0;  // time of the last probe
    UsageMeter used_;             // CPU time since then
    Backoff end_markers_;
    Backoff errors_;  // for a step that stopped early
    Backoff done_;    // for a step with a limited number of messages, all sent
    PayloadBlock payload_;
    std::unique_ptr<PublisherStep> step_;
    std::optional<Report> report_;
};

}  // namespace hydra
