#include "common/percentiles.h"

#include <algorithm>

namespace hydra {
namespace {

// For an index of at least 0.
std::int64_t bucket_of(std::int64_t index) {
    return std::max<std::int64_t>((index >> 10) - 1, 0);
}

std::int64_t lowest_of(std::int64_t index) {
    const std::int64_t bucket = bucket_of(index);
    return (index - (bucket << 10)) << bucket;
}

}  // namespace

std::int64_t highest_of(std::int64_t index) {
    if (index < 0) {
        return -lowest_of(-1 - index);
    }
    return lowest_of(index) + (std::int64_t{1} << bucket_of(index)) - 1;
}

std::int64_t count_of(const HistogramCounts& histogram) {
    std::int64_t count = 0;
    for (std::size_t i = 1; i < histogram.counts.size(); i += 2) {
        count += histogram.counts[i];
    }
    return count;
}

std::int64_t percentile_us(const HistogramCounts& histogram, std::int64_t count, std::int64_t percent) {
    // Rounded up. Computed in two parts, because the product may exceed 64 bits.
    const std::int64_t rank =
        std::max<std::int64_t>(count / 100 * percent + (count % 100 * percent + 99) / 100, 1);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i + 1 < histogram.counts.size(); i += 2) {
        sum += histogram.counts[i + 1];
        if (sum >= rank) {
            return std::min(highest_of(histogram.counts[i]), histogram.max_us);
        }
    }
    return 0;
}

}  // namespace hydra
