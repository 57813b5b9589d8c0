#include <doctest/doctest.h>

#include <map>

#include "common/clock.h"
#include "common/histogram.h"
#include "common/lag_bins.h"

using namespace hydra;

namespace {

constexpr std::int64_t kBinsStart = 1'800'000'000 * kSecondNs;
constexpr std::int64_t kPart = kSecondNs / 10;

using Bins = std::vector<std::optional<std::uint64_t>>;

struct BatchRead {
    std::int64_t at_ns;  // since the start
    std::int64_t age_ns;
};

// In a window of two seconds.
Bins binned(const std::vector<BatchRead>& batches) {
    LagBins bins(kBinsStart, kBinsStart + 2 * kSecondNs);
    for (const BatchRead& batch : batches) {
        bins.add(kBinsStart + batch.at_ns, batch.age_ns);
    }
    return bins.means_us();
}

// Bins with batches in only some parts.
Bins parts(const std::map<std::size_t, std::uint64_t>& means) {
    Bins bins(kLagBins);
    for (const auto& [part, mean] : means) {
        bins[part] = mean;
    }
    return bins;
}

}  // namespace

TEST_CASE("ages are averaged part by part") {
    CHECK(binned({}) == parts({}));
    CHECK(binned({{0, 1'000}}) == parts({{0, 1}}));
    CHECK(binned({{kPart - 1, 1'999}, {kPart, 5'000}}) == parts({{0, 1}, {1, 5}}));
    CHECK(binned({{2 * kSecondNs - 1, 7'000}}) == parts({{kLagBins - 1, 7}}));
    CHECK(binned({{0, 1'000}, {1, 2'000}, {2, 6'000}}) == parts({{0, 3}}));
    CHECK(binned({{0, 1'000}, {1, 2'000}}) == parts({{0, 1}}));
}

TEST_CASE("what is outside the window does not count") {
    CHECK(binned({{-1, 1'000}, {2 * kSecondNs, 1'000}, {3 * kSecondNs, 1'000}}) == parts({}));
}

TEST_CASE("an age is clamped as a latency is") {
    CHECK(binned({{0, -1'000}, {1, INT64_MIN}}) == parts({{0, 0}}));
    CHECK(binned({{0, INT64_MAX}, {1, INT64_MAX}}) == parts({{0, kHighestUs}}));
}

TEST_CASE("a window shorter than its parts") {
    LagBins bins(0, 5);
    for (std::int64_t now_ns = 0; now_ns < 30; ++now_ns) {
        bins.add(now_ns, 1'000 * now_ns);
    }
    const Bins means = bins.means_us();
    REQUIRE(means.size() == kLagBins);
    for (std::size_t i = 0; i < kLagBins; ++i) {
        CHECK(means[i] == i);
    }
}
