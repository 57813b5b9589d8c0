// SplitMix64: whole numbers of 64 bits, from a seed and a stream number. (Python:
// hydra/wire/data_message.py.) Source: G. Steele, D. Lea, C. Flood: Fast Splittable Pseudorandom Number
// Generators, OOPSLA 2014.
#pragma once

#include <cstdint>

namespace hydra {

inline constexpr std::uint64_t kSplitMixStep = 0x9E3779B97F4A7C15U;

inline constexpr std::uint64_t split_mixed(std::uint64_t number) {
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9U;
    number = (number ^ (number >> 27)) * 0x94D049BB133111EBU;
    return number ^ (number >> 31);
}

class SplitMix64 {
  public:
    SplitMix64(std::uint64_t seed, std::uint64_t stream) : state_(split_mixed(2 * seed + stream)) {}

    std::uint64_t next() { return split_mixed(state_ += kSplitMixStep); }

  private:
    std::uint64_t state_;
};

}  // namespace hydra
