#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "common/clock.h"
#include "common/pacer.h"

using namespace hydra;

namespace {

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;

std::vector<std::uint64_t> all_times(Pacer& pacer, std::size_t chunk) {
    std::vector<std::uint64_t> all;
    while (pacer.sent() < pacer.total()) {
        std::vector<std::uint64_t> times(std::min<std::uint64_t>(chunk, pacer.total() - pacer.sent()));
        pacer.times(times, 0);
        pacer.advance(times.size());
        all.insert(all.end(), times.begin(), times.end());
    }
    return all;
}

}  // namespace

TEST_CASE("message n is due at start + n/rate, rounded down, whatever the chunks") {
    for (const double rate : {1.0, 3.0, 7.5, 300.0, 999.999, 1e6 / 3}) {
        CAPTURE(rate);
        for (const std::size_t chunk : {1, 7, 100}) {
            Pacer pacer(rate, kStart, kStart + 2 * kSecondNs, 100);
            const auto times = all_times(pacer, chunk);
            CHECK(times.size() == static_cast<std::size_t>(std::ceil(rate * 2 - 1e-6)));
            for (std::size_t n = 0; n < times.size(); ++n) {
                const long double exact = static_cast<long double>(n) * 1e9L / static_cast<long double>(rate);
                REQUIRE(std::abs(static_cast<long double>(times[n] - static_cast<std::uint64_t>(kStart)) -
                                 exact) <= 1.0L);
            }
        }
    }
}

TEST_CASE("a schedule of days does not drift") {
    Pacer pacer(3.0, kStart, kStart + 1'000'000 * kSecondNs, 100);
    pacer.advance(3 * 999'999);
    CHECK(pacer.next_due_ns() == kStart + 999'999 * kSecondNs);
}

TEST_CASE("nothing is due before its time") {
    Pacer pacer(1000.0, kStart, kStart + kSecondNs, 10);
    CHECK(pacer.due(kStart - 1) == 0);
    CHECK(pacer.due(kStart) == 1);
    CHECK(pacer.due(kStart + 999'999) == 1);
    CHECK(pacer.due(kStart + 1'000'000) == 2);
    CHECK(pacer.due(kStart + kSecondNs / 2) == 10);
    pacer.advance(1);
    CHECK(pacer.due(kStart) == 0);
    CHECK(pacer.lag_ns(kStart + 3'000'000) == 2'000'000);
}

TEST_CASE("a publisher that kept up completes the schedule, another one stops") {
    Pacer kept(1000.0, kStart, kStart + kSecondNs, 100);
    kept.advance(998);
    CHECK_FALSE(kept.done(kStart + kSecondNs + 1));
    CHECK(kept.due(kStart + kSecondNs + 1) == 2);
    CHECK(kept.done(kStart + kSecondNs + kGraceNs));
    Pacer late(1000.0, kStart, kStart + kSecondNs, 100);
    late.advance(900);
    CHECK_FALSE(late.done(kStart + kSecondNs - 1));
    CHECK(late.done(kStart + kSecondNs));
    CHECK(late.due(kStart + kSecondNs) == 0);
}

TEST_CASE("an early stop moves the end, a late one does not") {
    Pacer pacer(1000.0, kStart, kStart + kSecondNs, 100);
    pacer.stop_at(kStart + kSecondNs / 2);
    CHECK(pacer.total() == 500);
    pacer.stop_at(kStart + kSecondNs);
    CHECK(pacer.total() == 500);
    pacer.advance(600);
    CHECK(pacer.done(kStart));
    CHECK(pacer.due(kStart + kSecondNs / 4) == 0);
}

TEST_CASE("rate max has no due times") {
    Pacer pacer(std::nullopt, kStart, kStart + kSecondNs, 7);
    CHECK(pacer.due(kStart - 1) == 0);
    CHECK(pacer.due(kStart) == 7);
    CHECK_FALSE(pacer.next_due_ns());
    std::vector<std::uint64_t> times(3);
    pacer.times(times, kStart + 5);
    CHECK(times == std::vector<std::uint64_t>(3, kStart + 5));
    CHECK_FALSE(pacer.done(kStart + kSecondNs - 1));
    CHECK(pacer.done(kStart + kSecondNs));
}

TEST_CASE("a simulated publisher keeps every rate to half a percent") {
    // A loop that wakes up to 2 ms late.
    std::mt19937 random(3);
    for (const double rate : {1.0, 9.7, 1000.0, 33'333.3, 1e6}) {
        CAPTURE(rate);
        const std::int64_t duration = rate < 100 ? 60 * kSecondNs : kSecondNs;
        Pacer pacer(rate, kStart, kStart + duration, 1000);
        std::int64_t now = kStart;
        while (!pacer.done(now)) {
            const std::uint64_t count = pacer.due(now);
            pacer.advance(count);
            now = count > 0 ? now + 1000
                            : std::max(now, pacer.next_due_ns().value_or(now)) + random() % 2'000'000;
        }
        const double wanted = rate * static_cast<double>(duration) / 1e9;
        CHECK(std::abs(static_cast<double>(pacer.sent()) - wanted) <= std::max(0.005 * wanted, 1.0));
    }
}

TEST_CASE("a bursty schedule has each second's messages at its start") {
    Pacer pacer(10.0, kStart, kStart + 5 * kSecondNs / 2, 100, Pacing::bursty);
    CHECK(pacer.total() == 25);
    CHECK(pacer.due(kStart) == 10);
    const auto times = [&] {
        Pacer copy = pacer;
        return all_times(copy, 4);
    }();
    for (std::size_t n = 0; n < times.size(); ++n) {
        CHECK(times[n] == static_cast<std::uint64_t>(kStart) + n / 10 * kSecondNs);
    }
    pacer.advance(10);
    CHECK(pacer.due(kStart + kSecondNs - 1) == 0);
    CHECK(pacer.next_due_ns() == kStart + kSecondNs);
    CHECK(pacer.due(kStart + kSecondNs) == 10);
    pacer.advance(10);
    CHECK(pacer.due(kStart + 2 * kSecondNs) == 5);
}

TEST_CASE("extreme rates do no harm") {
    for (const double rate : {1e-300, 5e-324, 1e-9, 1e12, 1e18, 1e300}) {
        CAPTURE(rate);
        Pacer pacer(rate, kStart, kStart + kSecondNs, 100);
        CHECK(pacer.total() >= 1);
        CHECK(pacer.due(kStart) >= 1);
        std::vector<std::uint64_t> times(std::min<std::uint64_t>(100, pacer.total()));
        pacer.times(times, 0);
        CHECK(std::ranges::is_sorted(times));
        pacer.advance(1);
        CHECK(pacer.next_due_ns().value_or(kStart) >= kStart);
    }
}
