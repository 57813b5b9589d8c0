#include "common/histogram.h"

#include <algorithm>
#include <new>

namespace hydra {

LatencyRecorder::LatencyRecorder()
    : counts_(static_cast<std::uint64_t*>(std::calloc(kBuckets, sizeof(std::uint64_t)))) {
    if (!counts_) {
        throw std::bad_alloc();
    }
}

void LatencyRecorder::record(std::span<const Header> headers, std::int64_t now_ns) {
    // Kept out of memory until the end: counting may write anywhere, as far as the compiler knows.
    std::uint64_t* const counts = counts_.get();
    std::int64_t lowest_us = min_us_;
    std::int64_t highest_us = max_us_;
    for (auto it = headers.begin(); it != headers.end();) {
        // At rate max all messages of a chunk carry one time: equal neighbours are counted together.
        const std::uint64_t time_ns = it->time_ns;
        std::uint64_t times = 1;
        while (++it != headers.end() && it->time_ns == time_ns) {
            ++times;
        }
        // Rounds up below 0, where everything counts as 0.
        const std::int64_t us =
            clamped(static_cast<std::int64_t>(static_cast<std::uint64_t>(now_ns) - time_ns) / 1000);
        counts[bucket_index(static_cast<std::uint64_t>(us))] += times;
        lowest_us = std::min(lowest_us, us);
        highest_us = std::max(highest_us, us);
    }
    min_us_ = lowest_us;
    max_us_ = highest_us;
}

void LatencyRecorder::reset() {
    if (max_us_ >= 0) {
        // Only what was touched.
        std::fill(counts_.get() + bucket_index(static_cast<std::uint64_t>(min_us_)),
                  counts_.get() + bucket_index(static_cast<std::uint64_t>(max_us_)) + 1, 0);
    }
    min_us_ = kHighestUs + 1;
    max_us_ = -1;
}

HistogramCounts LatencyRecorder::histogram() const {
    HistogramCounts sparse;
    if (max_us_ < 0) {
        return sparse;
    }
    sparse.min_us = static_cast<std::uint64_t>(min_us_);
    sparse.max_us = static_cast<std::uint64_t>(max_us_);
    const std::size_t last = bucket_index(sparse.max_us);
    for (std::size_t index = bucket_index(sparse.min_us); index <= last; ++index) {
        if (counts_[index] != 0) {
            sparse.counts.push_back(index);
            sparse.counts.push_back(counts_[index]);
        }
    }
    return sparse;
}

}  // namespace hydra
