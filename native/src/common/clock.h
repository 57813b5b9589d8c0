// The step's clock: CLOCK_MONOTONIC plus a wall-clock offset captured once, so that a stepped clock ruins
// nothing.
#pragma once

#include <cstdint>
#include <string>

#include "common/messages/from_controller.h"

namespace hydra {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::int64_t kMillisecondNs = 1'000'000;
inline constexpr std::int64_t kNeverNs = INT64_MAX;

std::int64_t monotonic_ns();
std::int64_t wall_ns();

// Seconds as the protocol has them (at most 1e9).
std::int64_t to_ns(double seconds);

// Unix time − CLOCK_MONOTONIC now; the tightest of a few readings.
std::int64_t wall_offset_ns();

// What identifies this boot of this host: processes with the same one share CLOCK_MONOTONIC.
const std::string& boot_id();

// The offset to use in a step: the controller's on its own host, so that all processes there agree exactly.
std::int64_t step_offset_ns(const Start& start);

// Sleeps on CLOCK_MONOTONIC; for times far below the millisecond that polls count in.
void sleep_until_ns(std::int64_t monotonic);

}  // namespace hydra
