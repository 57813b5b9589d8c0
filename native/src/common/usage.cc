#include "common/usage.h"

#include <sys/resource.h>

#include <algorithm>

namespace hydra {
namespace {

double seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

UsageMeter::UsageMeter() {
    rusage now{};
    getrusage(RUSAGE_SELF, &now);
    user_s_ = seconds(now.ru_utime);
    system_s_ = seconds(now.ru_stime);
}

Usage UsageMeter::read() const {
    rusage now{};
    getrusage(RUSAGE_SELF, &now);
    return {std::max(seconds(now.ru_utime) - user_s_, 0.0), std::max(seconds(now.ru_stime) - system_s_, 0.0),
            static_cast<std::uint64_t>(now.ru_maxrss) * 1024};
}

}  // namespace hydra
