#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "common/lag_trend.h"

using namespace hydra;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1'800'000'000 * kSecond;
constexpr std::int64_t kWindow = 10 * kSecond;
constexpr int kBatches = 100;

// Batches at even distances over ten seconds; `age_s` is a function of the seconds since the start.
LagTrend trend(const std::function<double(double)>& age_s, std::optional<double> rate = 1000) {
    LagTrend it(kStart, kStart + kWindow, rate);
    for (int i = 0; i < kBatches; ++i) {
        const double at_s = (i + 0.5) * 10 / kBatches;
        it.add(kStart + std::llround(at_s * 1e9), std::llround(age_s(at_s) * 1e9));
    }
    return it;
}

}  // namespace

TEST_CASE("the slope is the growth of the lag in messages per second") {
    for (const double growth : {0.0, 0.1, -0.05, 1.0}) {
        CAPTURE(growth);
        const auto slope = trend([growth](double at_s) { return 1 + growth * at_s; }).slope();
        REQUIRE(slope.has_value());
        CHECK(slope->value == doctest::Approx(1000 * growth).epsilon(1e-6));
        CHECK(slope->error < 1e-3);
    }
}

TEST_CASE("noise without a trend is no trend") {
    const auto slope = trend([](double at_s) { return 0.01 + 0.005 * std::sin(37 * at_s); }).slope();
    REQUIRE(slope.has_value());
    CHECK(std::abs(slope->value) < 4 * slope->error);
}

TEST_CASE("a slope that cannot be known is none") {
    CHECK_FALSE(trend([](double) { return 0.1; }, std::nullopt).slope().has_value());
    CHECK_FALSE(LagTrend(kStart, kStart + kWindow, 1000).slope().has_value());
    LagTrend few(kStart, kStart + kWindow, 1000);
    for (int i = 0; i < 4; ++i) {
        few.add(kStart + i * kWindow / 4, 5);
    }
    CHECK_FALSE(few.slope().has_value());
}

TEST_CASE("what is outside the window does not count") {
    LagTrend it = trend([](double) { return 0.01; });
    const auto before = it.slope();
    it.add(kStart - 1, kSecond);
    it.add(kStart + kWindow, kSecond);
    CHECK(it.slope()->value == before->value);
}
