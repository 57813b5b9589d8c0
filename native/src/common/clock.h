// This host's clocks, and the step's clock on this host. (Python: hydra/wire/clock.py.)
#pragma once

#include <cstdint>
#include <string>

#include "common/messages/from_controller.h"

namespace hydra {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::int64_t kMillisecondNs = 1'000'000;
inline constexpr std::int64_t kNeverNs = INT64_MAX;

std::int64_t monotonic_ns();

// Seconds of the protocol (at most 1e9) in ns.
std::int64_t to_ns(double seconds);

// The kernel's id of this boot of this host.
const std::string& boot_id();

// The id of this process's time namespace, such as "time:[4026531834]"; "" if the kernel has none. Processes
// of one boot and one time namespace share CLOCK_MONOTONIC.
const std::string& time_namespace();

// The id of this process's network namespace, which decides what interfaces the process sees; "" if unknown.
const std::string& network_namespace();

// Unix time that never jumps during a step: a straight line over this host's CLOCK_MONOTONIC, which the
// controller has fitted.
class StepClock {
  public:
    explicit StepClock(const HostClock& line) : line_(line) {}

    // The step's time at a reading of CLOCK_MONOTONIC.
    [[nodiscard]] std::int64_t at_ns(std::int64_t monotonic) const {
        const std::int64_t passed_ns = monotonic - line_.at_ns;
        return line_.step_ns + passed_ns + share(passed_ns, kSecondNs);
    }

    // The earliest reading of CLOCK_MONOTONIC at which the step's clock shows this time or a later one.
    [[nodiscard]] std::int64_t monotonic_of(std::int64_t step_ns) const {
        const std::int64_t passed_ns = step_ns - line_.step_ns;
        return line_.at_ns + passed_ns - share(passed_ns, kSecondNs + line_.rate_ppb);
    }

  private:
    // ⌊passed · rate / whole⌋, computed in two parts, because the product may exceed 64 bits.
    [[nodiscard]] std::int64_t share(std::int64_t passed_ns, std::int64_t whole) const {
        const std::int64_t times = floored(passed_ns, whole);
        return times * line_.rate_ppb + floored((passed_ns - times * whole) * line_.rate_ppb, whole);
    }

    // Division that rounds down, by a positive number.
    static std::int64_t floored(std::int64_t number, std::int64_t by) {
        return number / by - (number % by < 0 ? 1 : 0);
    }

    HostClock line_;
};

// The milliseconds until then, rounded up, for poll; at most an hour.
int milliseconds_until(std::int64_t monotonic);

// Sleeps on CLOCK_MONOTONIC; for times far below the millisecond, which is the unit of polls.
void sleep_until_ns(std::int64_t monotonic);

}  // namespace hydra
