// Percentiles of sparse HDR counts. Pure. (As percentiles_us in hydra/wire/buckets.py.)
#pragma once

#include <cstdint>

#include "common/messages/reports.h"

namespace hydra {

// The highest value (µs) that is counted at an index of histogram.h.
std::int64_t highest_of(std::int64_t index);

// The number of counted values.
std::int64_t count_of(const HistogramCounts& histogram);

// The value (µs) at this percentile of `count` values: the highest value equivalent to that of rank
// max(⌈percent · count / 100⌉, 1), at most the maximum. At least `percent` of the values are at or below it.
// 0 if nothing was counted.
std::int64_t percentile_us(const HistogramCounts& histogram, std::int64_t count, std::int64_t percent);

}  // namespace hydra
