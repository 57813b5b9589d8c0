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
    // At rate max all messages of a chunk carry one time: equal neighbours are counted together.
    for (std::size_t i = 0; i < headers.size();) {
        const std::uint64_t time_ns = headers[i].time_ns;
        std::size_t end = i + 1;
        while (end < headers.size() && headers[end].time_ns == time_ns) {
            ++end;
        }
        const auto elapsed = static_cast<std::int64_t>(static_cast<std::uint64_t>(now_ns) - time_ns);
        record_us(elapsed / 1000, end - i);  // rounds up below 0, where everything counts as 0
        i = end;
    }
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
