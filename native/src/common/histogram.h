// Latency counts of one client and one step: HDR buckets, 1 µs to 1 h, 3 significant digits. Pure.
//
// The index of a value is HdrHistogram's counts index, so reports merge with any HDR implementation:
//     bucket = max(bit_length(v) − 11, 0)
//     index  = bucket · 1024 + (v >> bucket)
//
// A value below 0, which a latency between two hosts may have, mirrors them: −1 − index(−v).
// (Python: hydra/wire/histogram.py.)
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "common/batch.h"
#include "common/messages/reports.h"

namespace hydra {

inline constexpr std::int64_t kHighestUs = 3'600'000'000;
inline constexpr std::int64_t kBuckets = 23'552;

// For a value from −kHighestUs to kHighestUs: −kBuckets … kBuckets − 1.
inline std::int64_t bucket_index(std::int64_t value_us) {
    const std::int64_t sign = value_us >> 63;  // −1 below 0, or 0
    const auto size = static_cast<std::uint64_t>((value_us ^ sign) - sign);
    const int bits = std::bit_width(size | 0x7FF) - 11;  // at least 0
    return ((static_cast<std::int64_t>(bits) << 10) + static_cast<std::int64_t>(size >> bits)) ^ sign;
}

// Rounded down, so a message that is early by less than 1 µs is below 0 as well.
inline std::int64_t floored_us(std::int64_t ns) {
    return ns / 1000 - (ns % 1000 < 0 ? 1 : 0);
}

// Up to kMostListed values are listed by their index, two bytes each; after that an array counts them. So the
// histogram of a subscriber that gets a message a second is small, and that of a fast one costs an addition
// for each message.
class LatencyRecorder {
  public:
    // Most values in the list: it takes a page, and the array at least two.
    static constexpr std::size_t kMostListed = 2048;

    // Counts one value `times` times; a value beyond ±1 h counts as ±1 h.
    void record_us(std::int64_t value_us, std::uint64_t times = 1) {
        const std::int64_t us = clamped(value_us);
        count(us, times);
        min_us_ = std::min(min_us_, us);
        max_us_ = std::max(max_us_, us);
    }

    // Counts now_ns − time for each message.
    void record(std::span<const Run> runs, std::int64_t now_ns);

    void reset();
    [[nodiscard]] HistogramCounts histogram() const;

  private:
    static std::int64_t clamped(std::int64_t us) { return std::clamp(us, -kHighestUs, kHighestUs); }

    // The counts of the values from 0 on; those of values below 0 stand before it.
    [[nodiscard]] std::uint64_t* zero() const { return counts_.get() + kBuckets; }
    [[nodiscard]] bool empty() const { return max_us_ < min_us_; }
    void count(std::int64_t us, std::uint64_t times) {
        if (counts_ == nullptr) {
            list(us, times);
        }
        if (counts_ != nullptr) {
            zero()[bucket_index(us)] += times;
        }
    }
    void list(std::int64_t us, std::uint64_t times);
    void count_instead();

    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    std::vector<std::uint16_t> listed_;  // index + kBuckets of each value; empty with an array
    // From calloc: pages without counts are never touched.
    std::unique_ptr<std::uint64_t[], Free> counts_;
    std::int64_t min_us_ = kHighestUs + 1;
    std::int64_t max_us_ = -kHighestUs - 1;
};

}  // namespace hydra
