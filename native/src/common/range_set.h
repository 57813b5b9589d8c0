// A set of numbers as ranges: cheap if it grows at its end. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/messages/parts.h"

namespace hydra {

class RangeSet {
  public:
    // Adds first … last. Returns how many of them are new.
    std::uint64_t add(std::uint64_t first, std::uint64_t last) {
        if (!ranges_.empty() && first == ranges_.back().last + 1) {
            ranges_.back().last = last;
            return last - first + 1;
        }
        return insert(first, last);
    }

    // The parts of first … last that are not in the set: sorted, disjoint, not adjacent.
    [[nodiscard]] std::vector<Range> gaps(std::uint64_t first, std::uint64_t last) const;

    // Sorted, disjoint, not adjacent.
    [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }

  private:
    std::uint64_t insert(std::uint64_t first, std::uint64_t last);

    std::vector<Range> ranges_;
};

}  // namespace hydra
