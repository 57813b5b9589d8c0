// This host's clocks, and the step's clock as this host reads it. (As hydra/wire/clock.py.)
#pragma once

#include <cstdint>
#include <string>

#include "common/messages/from_controller.h"

namespace hydra {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::int64_t kMillisecondNs = 1'000'000;
inline constexpr std::int64_t kNeverNs = INT64_MAX;

std::int64_t monotonic_ns();

// Seconds as the protocol has them (at most 1e9).
std::int64_t to_ns(double seconds);

// What identifies this boot of this host.
const std::string& boot_id();

// What identifies this process's time namespace, "time:[4026531834]"; "" where the kernel has none. Processes
// of one boot and one time namespace share CLOCK_MONOTONIC.
const std::string& time_namespace();

// What identifies this process's network namespace, likewise: whose interfaces it sees.
const std::string& network_namespace();

// Unix time that never steps during a step: a line that the controller has drawn through what it knows of
// this host's CLOCK_MONOTONIC.
class StepClock {
  public:
    explicit StepClock(const HostClock& line) : line_(line) {}

    // The step's time at a reading of CLOCK_MONOTONIC.
    [[nodiscard]] std::int64_t at_ns(std::int64_t monotonic) const {
        const std::int64_t passed_ns = monotonic - line_.at_ns;
        return line_.step_ns + passed_ns + share(passed_ns, kSecondNs);
    }

    // The earliest reading of CLOCK_MONOTONIC at which the step's time is this, or has passed it.
    [[nodiscard]] std::int64_t monotonic_of(std::int64_t step_ns) const {
        const std::int64_t passed_ns = step_ns - line_.step_ns;
        return line_.at_ns + passed_ns - share(passed_ns, kSecondNs + line_.rate_ppb);
    }

  private:
    // ⌊passed · rate / whole⌋, in two parts: the product of the two need not fit into 64 bits.
    [[nodiscard]] std::int64_t share(std::int64_t passed_ns, std::int64_t whole) const {
        const std::int64_t times = floored(passed_ns, whole);
        return times * line_.rate_ppb + floored((passed_ns - times * whole) * line_.rate_ppb, whole);
    }

    // Division that rounds down, by what is above 0.
    static std::int64_t floored(std::int64_t number, std::int64_t by) {
        return number / by - (number % by < 0 ? 1 : 0);
    }

    HostClock line_;
};

// From now, rounded up, for poll; at most an hour.
int milliseconds_until(std::int64_t monotonic);

// Sleeps on CLOCK_MONOTONIC; for times far below the millisecond that polls count in.
void sleep_until_ns(std::int64_t monotonic);

}  // namespace hydra
