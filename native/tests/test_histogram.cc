#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "common/histogram.h"

using namespace hydra;

namespace {

// The page's formula, word for word.
std::size_t index_of(std::uint64_t value) {
    const int length = value == 0 ? 0 : 64 - __builtin_clzll(value);
    const int bucket = std::max(length - 11, 0);
    return static_cast<std::size_t>(bucket) * 1024 + (value >> bucket);
}

}  // namespace

TEST_CASE("the index of a value") {
    for (const std::uint64_t value :
         {0ULL, 1ULL, 2047ULL, 2048ULL, 2049ULL, 4095ULL, 4096ULL, 1'000'000ULL, 3'600'000'000ULL}) {
        CAPTURE(value);
        CHECK(bucket_index(value) == index_of(value));
    }
    CHECK(bucket_index(3'600'000'000) == 23'220);
    std::mt19937_64 random(1);
    for (int i = 0; i < 100'000; ++i) {
        const std::uint64_t value = (random() >> (random() % 64)) % 3'600'000'001;
        REQUIRE(bucket_index(value) == index_of(value));
    }
}

TEST_CASE("nothing counted is nothing told") {
    const HistogramCounts empty = LatencyRecorder().histogram();
    CHECK(empty.counts.empty());
    CHECK(empty.min_us == 0);
    CHECK(empty.max_us == 0);
}

TEST_CASE("values are clamped and rounded down") {
    LatencyRecorder recorder;
    const std::vector<Header> headers = {
        {1, 0, 0, 10'000}, {1, 0, 1, 8'001}, {1, 0, 2, 20'000}, {1, 0, 3, INT64_MAX}};
    recorder.record(headers, 10'000);
    CHECK(recorder.histogram().counts == std::vector<std::uint64_t>{0, 3, 1, 1});
    recorder.record_us(INT64_MAX);
    CHECK(recorder.histogram().max_us == 3'600'000'000);
    CHECK(recorder.histogram().min_us == 0);
}

TEST_CASE("counts agree with a plain map, before and after a reset") {
    std::mt19937_64 random(2);
    LatencyRecorder recorder;
    for (int round = 0; round < 3; ++round) {
        recorder.reset();
        std::map<std::uint64_t, std::uint64_t> plain;
        std::uint64_t low = UINT64_MAX;
        std::uint64_t high = 0;
        for (int i = 0; i < 20'000; ++i) {
            const std::uint64_t value = (random() >> (random() % 64)) % 3'600'000'001;
            recorder.record_us(static_cast<std::int64_t>(value));
            ++plain[index_of(value)];
            low = std::min(low, value);
            high = std::max(high, value);
        }
        std::vector<std::uint64_t> expected;
        for (const auto& [index, count] : plain) {
            expected.push_back(index);
            expected.push_back(count);
        }
        CHECK(recorder.histogram().counts == expected);
        CHECK(recorder.histogram().min_us == low);
        CHECK(recorder.histogram().max_us == high);
    }
}
