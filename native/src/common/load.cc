#include "common/load.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hydra {
namespace {

constexpr std::size_t kMostPoints = 8192;
constexpr double kSecond = 1e9;
// Replaces the rate at the point where it begins to rise from 0; there it divides only 0.
constexpr double kLeast = 1e-300;
constexpr double kForever = std::numeric_limits<double>::infinity();

}  // namespace

std::string no_load(const std::vector<LoadPoint>& points) {
    if (points.size() > kMostPoints) {
        return "a load with too many points";
    }
    if (!points.empty() && points.front().at_s != 0) {
        return "a load begins at 0 s";
    }
    if (!std::ranges::is_sorted(points, {}, &LoadPoint::at_s)) {
        return "the times of a load rise";
    }
    return "";
}

LoadSchedule::LoadSchedule(const std::vector<LoadPoint>& points) {
    double due = 0;
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        const double begin = points[i].at_s;
        const double rate = points[i].rate;
        const double until = points[i + 1].rate;
        const double length = points[i + 1].at_s - begin;
        if (length > 0) {
            const double behind = due + (rate + until) / 2 * length;
            segments_.push_back({begin, length, rate, (until - rate) / length, due, behind});
            due = behind;
        }
    }
    if (!points.empty()) {
        const double rate = points.back().rate;
        segments_.push_back({points.back().at_s, kForever, rate, 0, due, rate > 0 ? kForever : due});
    }
}

std::int64_t LoadSchedule::due_ns(std::uint64_t n) const {
    const auto message = static_cast<double>(n);
    const auto it = std::ranges::upper_bound(segments_, message, {}, &Segment::end);
    if (it == segments_.end()) {
        return kNeverDueNs;
    }
    const double more = message - it->before;
    const double root = std::sqrt(std::max(it->rate * it->rate + 2 * it->slope * more, 0.0));
    const double offset = std::min(2 * more / std::max(it->rate + root, kLeast), it->length_s);
    return static_cast<std::int64_t>(std::floor((it->begin_s + offset) * kSecond));
}

std::uint64_t LoadSchedule::count_by(std::int64_t elapsed_ns) const {
    if (elapsed_ns < 0) {
        return 0;
    }
    const double elapsed = static_cast<double>(elapsed_ns) / kSecond;
    const auto it = std::ranges::upper_bound(segments_, elapsed, {}, &Segment::begin_s) - 1;
    const double offset = elapsed - it->begin_s;
    auto count =
        static_cast<std::uint64_t>(std::floor(it->before + (it->rate + it->slope * offset / 2) * offset)) + 1;
    // The formula may be off by rounding: the due times decide.
    while (count > 0 && due_ns(count - 1) > elapsed_ns) {
        --count;
    }
    while (due_ns(count) <= elapsed_ns) {
        ++count;
    }
    return count;
}

}  // namespace hydra
