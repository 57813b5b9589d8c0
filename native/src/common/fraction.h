// A rate as a fraction. Pure.
#pragma once

#include <cstdint>

namespace hydra {

struct Fraction {
    std::uint64_t numerator;
    std::uint64_t denominator;
};

// The fraction nearest to `value` (above 0) with a denominator of at most `limit`. Values above 2⁵³, which
// cannot be paced anyway, become 2⁵³.
Fraction nearest_fraction(double value, std::uint64_t limit);

}  // namespace hydra
