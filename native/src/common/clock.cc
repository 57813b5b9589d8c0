#include "common/clock.h"

#include <ctime>
#include <fstream>

namespace hydra {
namespace {

std::int64_t read_clock(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec * kSecondNs + now.tv_nsec;
}

std::string read_boot_id() {
    std::string id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
    return id;
}

}  // namespace

std::int64_t monotonic_ns() {
    return read_clock(CLOCK_MONOTONIC);
}

std::int64_t wall_ns() {
    return read_clock(CLOCK_REALTIME);
}

std::int64_t to_ns(double seconds) {
    return static_cast<std::int64_t>(seconds * 1e9);
}

ClientClock wall_offset() {
    std::int64_t best_gap = kNeverNs;
    std::int64_t best = 0;
    for (int i = 0; i < 5; ++i) {
        const std::int64_t before = monotonic_ns();
        const std::int64_t wall = wall_ns();
        const std::int64_t after = monotonic_ns();
        if (after - before < best_gap) {
            best_gap = after - before;
            best = wall - (before + after) / 2;
        }
    }
    return {.offset_ns = best, .error_ns = best_gap / 2};
}

const std::string& boot_id() {
    static const std::string id = read_boot_id();
    return id;
}

StepClock::StepClock(const Start& start)
    : own_(start.boot_id == boot_id() ? std::nullopt : std::optional(wall_offset())),
      offset_ns_(own_ ? own_->offset_ns : start.wall_offset_ns) {}

void sleep_until_ns(std::int64_t monotonic) {
    const timespec until{monotonic / kSecondNs, monotonic % kSecondNs};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until,
                    nullptr);  // a signal may cut it short: the loop looks again
}

}  // namespace hydra
