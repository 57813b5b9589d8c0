#include "common/pacer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/clock.h"
#include "common/fraction.h"

namespace hydra {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kRateDenominator =
    1'000'000;  // a millionth is far below the accuracy of a measured rate

}  // namespace

Pacer::Pacer(std::optional<double> rate, std::int64_t start_ns, std::int64_t stop_ns, std::uint64_t burst,
             Pacing pacing, std::optional<std::uint64_t> messages, LoadSchedule load)
    : start_ns_(start_ns),
      stop_ns_(stop_ns),
      burst_(burst),
      messages_(messages.value_or(UINT64_MAX)),
      paced_(rate.has_value()),
      bursty_(pacing == Pacing::bursty && load.empty()),
      load_(std::move(load)) {
    if (!rate) {
        total_ = messages_;
        return;
    }
    const Fraction per_second = nearest_fraction(*rate, kRateDenominator);
    if (per_second.numerator == 0) {
        numerator_ = INT64_MAX;  // less than one message in a week
    } else {
        const std::uint64_t common =
            std::gcd(static_cast<std::uint64_t>(kSecondNs) * per_second.denominator, per_second.numerator);
        numerator_ = static_cast<std::uint64_t>(kSecondNs) * per_second.denominator / common;
        denominator_ = per_second.numerator / common;
    }
    total_ = scheduled();
}

// The number of messages in the whole schedule, if there is a rate.
std::uint64_t Pacer::scheduled() const {
    return std::min(count_by(stop_ns_ - 1), messages_);
}

// The number of messages of the smooth schedule that are due at or before now_ns, if the window had no end.
std::uint64_t Pacer::count_by(std::int64_t now_ns) const {
    if (now_ns < start_ns_) {
        return 0;
    }
    if (!load_.empty()) {
        return load_.count_by(now_ns - start_ns_);
    }
    const auto elapsed = static_cast<std::uint64_t>(now_ns - start_ns_);
    return static_cast<std::uint64_t>((Wide{elapsed + 1} * denominator_ - 1) / numerator_) + 1;
}

std::int64_t Pacer::due_ns(std::uint64_t n) const {
    if (!load_.empty()) {
        const std::int64_t due_ns = load_.due_ns(n);
        return due_ns == LoadSchedule::kNeverDueNs ? due_ns : start_ns_ + due_ns;
    }
    const auto smooth = static_cast<std::int64_t>(Wide{n} * numerator_ / denominator_);
    return start_ns_ + (bursty_ ? smooth - smooth % kSecondNs : smooth);
}

std::uint64_t Pacer::due(std::int64_t now_ns) const {
    if (now_ns < start_ns_ || done(now_ns)) {
        return 0;
    }
    if (!paced_) {
        return std::min(total_ - sent_, burst_);
    }
    // A burst has the messages that the smooth schedule has due until the end of its second.
    const std::int64_t until = bursty_ ? now_ns - (now_ns - start_ns_) % kSecondNs + kSecondNs - 1 : now_ns;
    return std::min(std::min(count_by(until), total_) - sent_, burst_);
}

void Pacer::times(std::span<std::uint64_t> times, std::int64_t now_ns) const {
    if (!paced_) {
        std::ranges::fill(times, static_cast<std::uint64_t>(now_ns));
        return;
    }
    if (bursty_ || !load_.empty()) {
        for (std::size_t i = 0; i < times.size(); ++i) {
            times[i] = static_cast<std::uint64_t>(due_ns(sent_ + i));
        }
        return;
    }
    // One division; then only additions, which carry the remainder.
    const Wide product = Wide{sent_} * numerator_;
    std::uint64_t time =
        static_cast<std::uint64_t>(start_ns_) + static_cast<std::uint64_t>(product / denominator_);
    auto rest = static_cast<std::uint64_t>(product % denominator_);
    const std::uint64_t step = numerator_ / denominator_;
    const std::uint64_t step_rest = numerator_ % denominator_;
    for (std::uint64_t& it : times) {
        it = time;
        time += step;
        rest += step_rest;
        if (rest >= denominator_) {
            rest -= denominator_;
            ++time;
        }
    }
}

std::optional<std::int64_t> Pacer::next_due_ns() const {
    if (!paced_ || sent_ >= total_) {
        return std::nullopt;
    }
    return due_ns(sent_);
}

std::int64_t Pacer::lag_ns(std::int64_t now_ns) const {
    const auto next = next_due_ns();
    return next ? std::max<std::int64_t>(now_ns - *next, 0) : 0;
}

bool Pacer::done(std::int64_t now_ns) const {
    if (!paced_) {
        return now_ns >= stop_ns_ || complete();
    }
    const auto next = next_due_ns();
    if (!next) {
        return true;
    }
    if (now_ns < stop_ns_) {
        return false;
    }
    return now_ns >= stop_ns_ + kGraceNs || *next < stop_ns_ - kGraceNs;
}

void Pacer::stop_at(std::int64_t stop_ns) {
    if (stop_ns >= stop_ns_) {
        return;
    }
    stop_ns_ = stop_ns;
    if (paced_) {
        total_ = scheduled();
    }
}

}  // namespace hydra
