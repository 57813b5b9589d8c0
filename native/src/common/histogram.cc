#include "common/histogram.h"

#include <algorithm>
#include <new>
#include <utility>

namespace hydra {

// Adds one value to the list; if the list is full, the array counts it and all later ones.
void LatencyRecorder::list(std::int64_t us, std::uint64_t times) {
    if (listed_.size() + times > kMostListed) {
        count_instead();
        return;
    }
    listed_.insert(listed_.end(), times, static_cast<std::uint16_t>(bucket_index(us) + kBuckets));
}

void LatencyRecorder::count_instead() {
    counts_.reset(static_cast<std::uint64_t*>(std::calloc(2 * kBuckets, sizeof(std::uint64_t))));
    if (counts_ == nullptr) {
        throw std::bad_alloc();
    }
    for (const std::uint16_t index : std::exchange(listed_, {})) {
        ++counts_[index];
    }
}

void LatencyRecorder::record(std::span<const Run> runs, std::int64_t now_ns) {
    // Local until the end: for the compiler, counting may write to any memory.
    std::int64_t lowest_us = min_us_;
    std::int64_t highest_us = max_us_;
    for (const Run& run : runs) {
        const std::int64_t us = clamped(
            floored_us(static_cast<std::int64_t>(static_cast<std::uint64_t>(now_ns) - run.first.time_ns)));
        count(us, run.count);
        lowest_us = std::min(lowest_us, us);
        highest_us = std::max(highest_us, us);
    }
    min_us_ = lowest_us;
    max_us_ = highest_us;
}

void LatencyRecorder::reset() {
    listed_.clear();
    if (counts_ != nullptr && !empty()) {
        // Only the part that was touched.
        std::fill(zero() + bucket_index(min_us_), zero() + bucket_index(max_us_) + 1, 0);
    }
    min_us_ = kHighestUs + 1;
    max_us_ = -kHighestUs - 1;
}

HistogramCounts LatencyRecorder::histogram() const {
    HistogramCounts sparse;
    if (empty()) {
        return sparse;
    }
    sparse.min_us = min_us_;
    sparse.max_us = max_us_;
    if (counts_ == nullptr) {
        std::vector<std::uint16_t> sorted = listed_;
        std::ranges::sort(sorted);
        for (const std::uint16_t listed : sorted) {
            const std::int64_t index = listed - kBuckets;
            if (sparse.counts.empty() || sparse.counts[sparse.counts.size() - 2] != index) {
                sparse.counts.insert(sparse.counts.end(), {index, 0});
            }
            ++sparse.counts.back();
        }
        return sparse;
    }
    const std::int64_t last = bucket_index(max_us_);
    for (std::int64_t index = bucket_index(min_us_); index <= last; ++index) {
        if (zero()[index] != 0) {
            sparse.counts.push_back(index);
            sparse.counts.push_back(static_cast<std::int64_t>(zero()[index]));
        }
    }
    return sparse;
}

}  // namespace hydra
