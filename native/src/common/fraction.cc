#include "common/fraction.h"

#include <cmath>

namespace hydra {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr int kFractionBits = 100;  // keeps 2 · remainder · limit within 128 bits

Fraction narrow(Wide numerator, Wide denominator) {
    return {static_cast<std::uint64_t>(numerator), static_cast<std::uint64_t>(denominator)};
}

}  // namespace

// Continued fractions: the best approximation is the last convergent p1/q1 within the limit, or the
// semiconvergent between it and the next convergent. (Fraction.limit_denominator in Python's standard library
// chooses the same.)
Fraction nearest_fraction(double value, std::uint64_t limit) {
    if (value >= 0x1p53) {
        return {std::uint64_t{1} << 53, 1};
    }
    // A double is m / 2^k.
    int exponent = 0;
    auto m = static_cast<std::uint64_t>(std::ldexp(std::frexp(value, &exponent), 53));
    int k = 53 - exponent;
    if (k > kFractionBits) {
        m = k - kFractionBits < 64 ? m >> (k - kFractionBits) : 0;
        k = kFractionBits;
    }
    for (; k > 0 && m % 2 == 0; --k) {
        m /= 2;
    }
    const Wide denominator = Wide{1} << k;
    if (denominator <= limit) {
        return narrow(m, denominator);
    }
    Wide p0 = 0, q0 = 1, p1 = 1, q1 = 0;
    Wide n = m, d = denominator;
    while (true) {
        const Wide a = n / d;
        const Wide q2 = q0 + a * q1;
        if (q2 > limit) {
            break;
        }
        const Wide p2 = p0 + a * p1;
        p0 = p1, q0 = q1, p1 = p2, q1 = q2;
        const Wide rest = n - a * d;
        n = d, d = rest;
    }
    const Wide steps = (limit - q0) / q1;
    const Wide q = q0 + steps * q1;
    return 2 * d * q <= denominator ? narrow(p1, q1) : narrow(p0 + steps * p1, q);
}

}  // namespace hydra
