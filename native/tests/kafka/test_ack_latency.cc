#include <doctest/doctest.h>

#include "kafka/ack_latency.h"

using namespace hydra;
using Counts = std::vector<std::int64_t>;

namespace {

constexpr std::int64_t kMs = 1'000'000;

std::int64_t at(std::int64_t ms) {
    return bucket_index(ms * 1000);
}

}  // namespace

TEST_CASE("latencies are from each chunk's own hand-over, in any order of answers") {
    AckLatency latency;
    latency.begin();
    latency.handed_over(3, 0 * kMs);
    latency.handed_over(2, 1 * kMs);
    latency.handed_over(0, 2 * kMs);
    latency.handed_over(1, 2 * kMs);
    latency.answered(2, 3, 1, 3 * kMs, true);  // 2 of the first chunk; 3 and 4 of the second
    CHECK(latency.chunks() == 3);
    latency.answered(5, 1, 1, 4 * kMs, true);
    latency.answered(0, 2, 1, 7 * kMs, true);
    CHECK(latency.chunks() == 0);
    CHECK(latency.histogram().counts == Counts{at(2), 3, at(3), 1, at(7), 2});
}

TEST_CASE("a partition's answers skip the messages of the others") {
    AckLatency latency;
    latency.begin();
    for (std::int64_t i = 0; i < 10; ++i) {
        latency.handed_over(1, i * kMs);
    }
    latency.answered(1, 3, 3, 11 * kMs, true);  // 1, 4, 7
    CHECK(latency.histogram().counts == Counts{at(4), 1, at(7), 1, at(10), 1});
}

TEST_CASE("what failed is forgotten and not counted, and a new epoch begins with nothing") {
    AckLatency latency;
    latency.begin();
    latency.handed_over(4, 0);
    latency.answered(0, 3, 1, 5 * kMs, false);
    CHECK(latency.histogram().counts.empty());
    CHECK(latency.chunks() == 1);
    latency.answered(3, 9, 1, 5 * kMs, true);
    CHECK(latency.histogram().counts == Counts{at(5), 1});
    CHECK(latency.chunks() == 0);
    latency.begin();
    CHECK(latency.histogram().counts.empty());
}
