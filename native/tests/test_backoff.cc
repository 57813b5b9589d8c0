#include <doctest/doctest.h>

#include <vector>

#include "common/backoff.h"

using namespace hydra;

namespace {

// The times of a caller that wakes up late by this much each time.
std::vector<std::int64_t> times_ms(Backoff repeats, std::int64_t until_ms, std::int64_t late_ms = 0) {
    std::vector<std::int64_t> times;
    while (repeats.next_ns() <= until_ms * kMillisecondNs) {
        CHECK_FALSE(repeats.due(repeats.next_ns() - 1));
        const std::int64_t now_ns = repeats.next_ns() + late_ms * kMillisecondNs;
        CHECK(repeats.due(now_ns));
        times.push_back(now_ns / kMillisecondNs);
    }
    return times;
}

using Times = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("probes come at doubling distances up to a second and never end") {
    const Times times = times_ms(Backoff(0, kSecondNs, kNeverNs), 100'000);
    CHECK(Times(times.begin(), times.begin() + 8) == Times{0, 50, 150, 350, 750, 1550, 2550, 3550});
    CHECK(times.back() == 99'550);
}

TEST_CASE("the first distance can be shorter") {
    const Times times = times_ms(Backoff(0, kSecondNs / 2, kNeverNs, 20 * kMillisecondNs), 2'000);
    CHECK(times == Times{0, 20, 60, 140, 300, 620, 1120, 1620});
}

TEST_CASE("end markers come at doubling distances for a minute") {
    const Times times = times_ms(Backoff(7 * kSecondNs, kNeverNs, 60 * kSecondNs), 1'000'000);
    CHECK(times == Times{7000, 7050, 7150, 7350, 7750, 8550, 10150, 13350, 19750, 32550, 58150});
}

TEST_CASE("a late caller keeps the waits") {
    CHECK(times_ms(Backoff(0, kSecondNs, kNeverNs), 1000, 30) == Times{30, 110, 240, 470, 900});
}

TEST_CASE("a caller that has to rest sends after the rest, and keeps the waits") {
    Backoff repeats(0, kSecondNs, kNeverNs);
    CHECK(repeats.due(0));
    CHECK_FALSE(repeats.due(50 * kMillisecondNs, 400 * kMillisecondNs));
    CHECK(repeats.next_ns() == 400 * kMillisecondNs);
    CHECK(repeats.due(400 * kMillisecondNs, 400 * kMillisecondNs));
    CHECK(repeats.next_ns() == 500 * kMillisecondNs);
    CHECK_FALSE(repeats.due(499 * kMillisecondNs, 0));
}

TEST_CASE("a backoff without a begin is never due") {
    Backoff never;
    CHECK(never.next_ns() == kNeverNs);
    CHECK_FALSE(never.due(kNeverNs - 1));
}
