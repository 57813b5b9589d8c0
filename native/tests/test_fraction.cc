#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "common/fraction.h"

using namespace hydra;

namespace {

void check(double value, std::uint64_t numerator, std::uint64_t denominator) {
    CAPTURE(value);
    const Fraction it = nearest_fraction(value, 1'000'000);
    CHECK(it.numerator == numerator);
    CHECK(it.denominator == denominator);
}

}  // namespace

TEST_CASE("rates as fractions") {
    // The results of Fraction(value).limit_denominator(1_000_000).
    check(1.0, 1, 1);
    check(2500.5, 5001, 2);
    check(0.1, 1, 10);
    check(1.0 / 3, 1, 3);
    check(33'333.3, 333'333, 10);
    check(3.141592653589793, 3126535, 995207);
    check(0x1p-30, 0, 1);
    check(6e-7, 1, 1'000'000);
    check(123456.789012, 77026789430, 623917);
}

TEST_CASE("no fraction with a smaller denominator is nearer") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 300; ++i) {
        const double value = std::uniform_real_distribution<double>(0.01, 100)(random);
        constexpr std::uint64_t limit = 200;
        const Fraction it = nearest_fraction(value, limit);
        REQUIRE(it.denominator <= limit);
        const double error =
            std::fabs(static_cast<double>(it.numerator) / static_cast<double>(it.denominator) - value);
        for (std::uint64_t d = 1; d <= limit; ++d) {
            const double other = std::round(value * static_cast<double>(d)) / static_cast<double>(d);
            REQUIRE(error <= std::fabs(other - value) + 1e-15);
        }
    }
}
