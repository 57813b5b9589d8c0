#include "common/time_series.h"

#include <algorithm>
#include <utility>

namespace hydra {
namespace {

// Most buckets in one message, far fewer than fit into it.
constexpr std::size_t kBucketsAtOnce = 20'000;
constexpr std::size_t kSecondsAtOnce = 1024;

}  // namespace

LatencyRecorder& ReceivedTimeSeries::at(std::int64_t since_start_ns) {
    if (const std::uint64_t second = second_of(since_start_ns); second != second_) {
        end_second();
        second_ = second;
    }
    return recorder_;
}

void ReceivedTimeSeries::end_second() {
    HistogramCounts latency = recorder_.histogram();
    if (latency.counts.empty()) {
        return;
    }
    recorder_.reset();
    std::uint64_t messages = 0;
    for (std::size_t i = 1; i < latency.counts.size(); i += 2) {
        messages += static_cast<std::uint64_t>(latency.counts[i]);
    }
    complete_.push_back({.second = second_, .messages = messages, .latency = std::move(latency)});
}

std::vector<SecondCounts> ReceivedTimeSeries::take() {
    end_second();
    return std::exchange(complete_, {});
}

void TimeSeriesSum::add(const std::vector<SecondCounts>& seconds) {
    for (const SecondCounts& it : seconds) {
        Sum& sum = sums_[it.second];
        sum.messages += it.messages;
        const std::vector<std::int64_t>& counts = it.latency.counts;
        if (counts.empty()) {
            continue;
        }
        const bool first = sum.counts.empty();
        sum.min_us = first ? it.latency.min_us : std::min(sum.min_us, it.latency.min_us);
        sum.max_us = first ? it.latency.max_us : std::max(sum.max_us, it.latency.max_us);
        for (std::size_t i = 0; i + 1 < counts.size(); i += 2) {
            sum.counts[counts[i]] += counts[i + 1];
        }
    }
}

std::vector<SecondCounts> TimeSeriesSum::take() {
    std::vector<SecondCounts> all;
    for (const auto& [second, sum] : std::exchange(sums_, {})) {
        SecondCounts& it = all.emplace_back(SecondCounts{.second = second, .messages = sum.messages});
        it.latency.min_us = sum.min_us;
        it.latency.max_us = sum.max_us;
        for (const auto& [index, count] : sum.counts) {
            it.latency.counts.push_back(index);
            it.latency.counts.push_back(count);
        }
    }
    return all;
}

std::vector<std::vector<SecondCounts>> parts_of(std::vector<SecondCounts> seconds) {
    std::vector<std::vector<SecondCounts>> parts;
    std::size_t buckets = 0;
    for (SecondCounts& second : seconds) {
        const std::size_t size = second.latency.counts.size() / 2;
        if (parts.empty() || buckets + size > kBucketsAtOnce || parts.back().size() == kSecondsAtOnce) {
            parts.emplace_back();
            buckets = 0;
        }
        buckets += size;
        parts.back().push_back(std::move(second));
    }
    return parts;
}

}  // namespace hydra
