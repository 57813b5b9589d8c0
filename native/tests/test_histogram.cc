#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "common/histogram.h"

using namespace hydra;

namespace {

// The formula of docs/control-protocol.md, unchanged.
std::int64_t index_of(std::int64_t value) {
    if (value < 0) {
        return -1 - index_of(-value);
    }
    const int length = value == 0 ? 0 : 64 - __builtin_clzll(static_cast<std::uint64_t>(value));
    const int bucket = std::max(length - 11, 0);
    return std::int64_t{bucket} * 1024 + (value >> bucket);
}

// All sizes are equally frequent, up to ±1 h.
std::int64_t value_of(std::mt19937_64& random) {
    const auto size = static_cast<std::int64_t>((random() >> (random() % 64)) % 3'600'000'001);
    return random() % 2 == 0 ? size : -size;
}

// Messages with these times, each in its own run.
std::vector<Run> runs_at(const std::vector<std::uint64_t>& times_ns) {
    std::vector<Run> runs;
    for (const std::uint64_t time_ns : times_ns) {
        runs.push_back({{1, 0, runs.size(), time_ns}, 1, kHeaderBytes});
    }
    return runs;
}

}  // namespace

TEST_CASE("the index of a value") {
    for (const std::int64_t size : {0L, 1L, 2047L, 2048L, 2049L, 4095L, 4096L, 1'000'000L, 3'600'000'000L}) {
        CAPTURE(size);
        CHECK(bucket_index(size) == index_of(size));
        CHECK(bucket_index(-size) == index_of(-size));
    }
    CHECK(bucket_index(3'600'000'000) == 23'220);
    CHECK(bucket_index(-1) == -2);
    CHECK(bucket_index(-3'600'000'000) == -23'221);
    std::mt19937_64 random(1);
    for (int i = 0; i < 100'000; ++i) {
        const std::int64_t value = value_of(random);
        REQUIRE(bucket_index(value) == index_of(value));
    }
}

TEST_CASE("a histogram without a count is empty") {
    const HistogramCounts empty = LatencyRecorder().histogram();
    CHECK(empty.counts.empty());
    CHECK(empty.min_us == 0);
    CHECK(empty.max_us == 0);
}

TEST_CASE("values are clamped and rounded down") {
    LatencyRecorder recorder;
    recorder.record(runs_at({10'000, 8'001, 10'001, 11'000, 11'001, 1}), 10'000);
    CHECK(recorder.histogram().counts == std::vector<std::int64_t>{-3, 1, -2, 2, 0, 1, 1, 1, 9, 1});
    CHECK(recorder.histogram().min_us == -2);
    CHECK(recorder.histogram().max_us == 9);
    recorder.record(runs_at({INT64_MAX, UINT64_MAX, 1ULL << 63}), 10'000);
    recorder.record_us(INT64_MAX);
    CHECK(recorder.histogram().min_us == -3'600'000'000);
    CHECK(recorder.histogram().max_us == 3'600'000'000);
}

TEST_CASE("all messages of a run are counted") {
    LatencyRecorder recorder;
    const std::vector<Run> runs = {{{1, 0, 0, 4'000}, 1500, kHeaderBytes},
                                   {{1, 0, 1500, 7'000}, 1, kHeaderBytes},
                                   {{1, 0, 1501, 8'000}, 1500, kHeaderBytes}};
    recorder.record(runs, 10'000);
    recorder.record(runs, 10'000);
    CHECK(recorder.histogram().counts == std::vector<std::int64_t>{2, 3000, 3, 2, 6, 3000});
    CHECK(recorder.histogram().min_us == 2);
    CHECK(recorder.histogram().max_us == 6);
}

TEST_CASE("only negative values are returned unchanged, and discarded") {
    LatencyRecorder recorder;
    recorder.record_us(-5, 3);
    recorder.record_us(-2048);
    CHECK(recorder.histogram().counts == std::vector<std::int64_t>{-2049, 1, -6, 3});
    CHECK(recorder.histogram().max_us == -5);
    recorder.reset();
    CHECK(recorder.histogram().counts.empty());
    recorder.record_us(0);
    CHECK(recorder.histogram().counts == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("few values, and as many as make it an array, one by one and several at a time") {
    constexpr auto most = static_cast<std::int64_t>(LatencyRecorder::kMostListed);
    for (const std::int64_t values : {1L, most - 1, most, most + 1, 2 * most}) {
        CAPTURE(values);
        LatencyRecorder singly;
        LatencyRecorder together;
        LatencyRecorder at_once;
        std::vector<std::uint64_t> times_ns;
        for (std::int64_t i = 0; i < values; ++i) {
            singly.record_us(i % 3 - 1);
            times_ns.push_back(static_cast<std::uint64_t>(10'000 - (i % 3 - 1) * 1000));
        }
        for (const std::int64_t us : {-1L, 0L, 1L}) {
            together.record_us(
                us, static_cast<std::uint64_t>((values + 1 - us) / 3 > 0 ? (values + 1 - us) / 3 : 0));
        }
        at_once.record(runs_at(times_ns), 10'000);
        std::vector<std::int64_t> expected;
        for (const std::int64_t us : {-1L, 0L, 1L}) {
            if (const std::int64_t count = (values + 1 - us) / 3; count > 0) {
                expected.insert(expected.end(), {bucket_index(us), count});
            }
        }
        for (const LatencyRecorder* recorder : {&singly, &together, &at_once}) {
            CHECK(recorder->histogram().counts == expected);
        }
    }
}

TEST_CASE("counts agree with a plain map, before and after a reset") {
    std::mt19937_64 random(2);
    LatencyRecorder recorder;
    for (int round = 0; round < 3; ++round) {
        recorder.reset();
        std::map<std::int64_t, std::int64_t> plain;
        std::int64_t low = INT64_MAX;
        std::int64_t high = INT64_MIN;
        for (int i = 0; i < 20'000; ++i) {
            const std::int64_t value = value_of(random);
            recorder.record_us(value);
            ++plain[index_of(value)];
            low = std::min(low, value);
            high = std::max(high, value);
        }
        std::vector<std::int64_t> expected;
        for (const auto& [index, count] : plain) {
            expected.push_back(index);
            expected.push_back(count);
        }
        CHECK(recorder.histogram().counts == expected);
        CHECK(recorder.histogram().min_us == low);
        CHECK(recorder.histogram().max_us == high);
    }
}
