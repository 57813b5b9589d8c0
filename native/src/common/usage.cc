#include "common/usage.h"

namespace hydra {
namespace {

double seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double between(const timeval& begin, const timeval& end) {
    const double spent = seconds(end) - seconds(begin);
    return spent > 0 ? spent : 0;
}

}  // namespace

UsageMeter::UsageMeter() {
    getrusage(RUSAGE_SELF, &begin_);
}

Usage UsageMeter::read() const {
    rusage now{};
    getrusage(RUSAGE_SELF, &now);
    return {between(begin_.ru_utime, now.ru_utime), between(begin_.ru_stime, now.ru_stime),
            static_cast<std::uint64_t>(now.ru_maxrss) * 1024};
}

}  // namespace hydra
