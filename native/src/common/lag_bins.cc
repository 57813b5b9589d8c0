#include "common/lag_bins.h"

#include <algorithm>

#include "common/histogram.h"

namespace hydra {

LagBins::LagBins(std::int64_t start_ns, std::int64_t stop_ns)
    : start_ns_(start_ns),
      part_ns_(std::max<std::int64_t>((stop_ns - start_ns) / static_cast<std::int64_t>(kLagBins), 1)) {}

void LagBins::add(std::int64_t now_ns, std::int64_t age_ns) {
    if (now_ns < start_ns_) {
        return;
    }
    const auto index = static_cast<std::uint64_t>((now_ns - start_ns_) / part_ns_);
    if (index < kLagBins) {
        ++parts_[index].count;
        parts_[index].sum_us +=
            static_cast<std::uint64_t>(std::clamp<std::int64_t>(age_ns / 1000, 0, kHighestUs));
    }
}

std::vector<std::optional<std::uint64_t>> LagBins::means_us() const {
    std::vector<std::optional<std::uint64_t>> means;
    means.reserve(kLagBins);
    for (const Part& part : parts_) {
        means.push_back(part.count > 0 ? std::optional(part.sum_us / part.count) : std::nullopt);
    }
    return means;
}

}  // namespace hydra
