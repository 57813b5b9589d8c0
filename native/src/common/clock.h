// The step's clock: CLOCK_MONOTONIC plus a wall-clock offset captured once, so that a stepped clock ruins
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/messages/from_controller.h"
#include "common/messages/reports.h"

namespace hydra {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::int64_t kMillisecondNs = 1'000'000;
inline constexpr std::int64_t kNeverNs = INT64_MAX;

std::int64_t monotonic_ns();
std::int64_t wall_ns();

// Seconds as the protocol has them (at most 1e9).
std::int64_t to_ns(double seconds);

// Unix time − CLOCK_MONOTONIC now; the tightest of a few readings, and half the time that it took.
ClientClock wall_offset();

// What identifies this boot of this host: processes with the same one share CLOCK_MONOTONIC.
const std::string& boot_id();

// The step's clock of one client. On the controller's own host it is the controller's, so that all processes
// there agree exactly.
class StepClock {
  public:
    explicit StepClock(const Start& start);

    // What is added to CLOCK_MONOTONIC.
    [[nodiscard]] std::int64_t offset_ns() const { return offset_ns_; }
    // For the report: none where the clock is the controller's.
    [[nodiscard]] const std::optional<ClientClock>& own() const { return own_; }

  private:
    std::optional<ClientClock> own_;
    std::int64_t offset_ns_;
};

// Sleeps on CLOCK_MONOTONIC; for times far below the millisecond that polls count in.
void sleep_until_ns(std::int64_t monotonic);

}  // namespace hydra
