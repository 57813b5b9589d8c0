// Latency counts of one client and one step: HDR buckets, 1 µs to 1 h, 3 significant digits. Pure.
//
// The index of a value is HdrHistogram's counts index, so that reports merge with any HDR implementation:
//     bucket = max(bit_length(v) − 11, 0)
//     index  = bucket · 1024 + (v >> bucket)
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "common/header.h"
#include "common/messages/reports.h"

namespace hydra {

inline constexpr std::int64_t kHighestUs = 3'600'000'000;
inline constexpr std::size_t kBuckets = 23'552;

// Of a value from 0 to kHighestUs.
inline std::size_t bucket_index(std::uint64_t value_us) {
    const int bits = std::bit_width(value_us | 0x7FF) - 11;  // at least 0
    return (static_cast<std::size_t>(bits) << 10) + (value_us >> bits);
}

class LatencyRecorder {
  public:
    LatencyRecorder();

    // Counts one value, so many times; below 0 counts as 0, above 1 h as 1 h.
    void record_us(std::int64_t value_us, std::uint64_t times = 1) {
        const std::int64_t us = clamped(value_us);
        counts_[bucket_index(static_cast<std::uint64_t>(us))] += times;
        min_us_ = std::min(min_us_, us);
        max_us_ = std::max(max_us_, us);
    }

    // Counts now_ns − time for each header.
    void record(std::span<const Header> headers, std::int64_t now_ns);

    void reset();
    [[nodiscard]] HistogramCounts histogram() const;

  private:
    static std::int64_t clamped(std::int64_t us) { return std::clamp<std::int64_t>(us, 0, kHighestUs); }

    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    // From calloc: pages that are never counted in are never touched, so an idle client stays small.
    std::unique_ptr<std::uint64_t[], Free> counts_;
    std::int64_t min_us_ = kHighestUs + 1;
    std::int64_t max_us_ = -1;
};

}  // namespace hydra
