#include "common/read_limit.h"

#include <algorithm>
#include <cmath>

#include "common/clock.h"

namespace hydra {
namespace {

// The part of a message's time by which a reader may be late without loss of its rate.
constexpr double kLate = 0.5;

}  // namespace

ReadLimit::ReadLimit(double rate, std::int64_t begin_ns)
    : rate_(rate),
      depth_(std::max(1.0, std::floor(rate + std::max(1.0, rate / 10)) - rate + kLate)),
      at_ns_(begin_ns) {}

double ReadLimit::credit(std::int64_t now_ns) const {
    const auto passed_ns = static_cast<double>(std::max<std::int64_t>(now_ns - at_ns_, 0));
    return std::min(credit_ + passed_ns * rate_ / 1e9, depth_);
}

std::uint64_t ReadLimit::allowance(std::int64_t now_ns) const {
    return static_cast<std::uint64_t>(std::max(std::floor(credit(now_ns)), 0.0));
}

std::int64_t ReadLimit::next_ns(std::int64_t now_ns) const {
    const double missing = 1 - credit(now_ns);
    if (missing <= 0) {
        return now_ns;
    }
    const double wait_ns = rate_ > 0 ? std::ceil(missing / rate_ * 1e9) : 9e18;
    return wait_ns < 9e18 - static_cast<double>(now_ns)
               ? now_ns + std::max<std::int64_t>(static_cast<std::int64_t>(wait_ns), 1)
               : kNeverNs;
}

void ReadLimit::read(std::int64_t now_ns, std::uint64_t messages) {
    credit_ = credit(now_ns) - static_cast<double>(messages);
    at_ns_ = std::max(now_ns, at_ns_);
}

}  // namespace hydra
