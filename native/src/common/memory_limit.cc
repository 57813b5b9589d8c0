#include "common/memory_limit.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "common/clock.h"

namespace hydra {
namespace {

constexpr std::int64_t kTrimEveryNs = 20 * kMillisecondNs;

std::uint64_t resident_bytes() {
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::string MemoryLimit::exceeded() {
    if (limit_bytes_ == 0 || resident_bytes() <= limit_bytes_) {
        return "";
    }
    if (!gave_back_) {
        // Much of the memory may have been freed by the library, also in an earlier step: the kernel gets it
        // back. This is slow, so only once in a step.
        gave_back_ = true;
        malloc_trim(0);
        if (resident_bytes() <= limit_bytes_) {
            return "";
        }
    }
    return "the process passed its memory limit of " + std::to_string(limit_bytes_) +
           " bytes: too much waits in its queue";
}

void MemoryLimit::begin_step(std::int64_t limit_ns) {
    gave_back_ = false;
    if (limit_bytes_ == 0) {
        return;
    }
    const std::int64_t deadline_ns = monotonic_ns() + limit_ns;
    while (resident_bytes() > limit_bytes_ / 2) {
        malloc_trim(0);
        if (monotonic_ns() >= deadline_ns) {
            return;
        }
        sleep_until_ns(monotonic_ns() + kTrimEveryNs);
    }
}

}  // namespace hydra
