#include "common/range_set.h"

#include <algorithm>

namespace hydra {

std::uint64_t RangeSet::insert(std::uint64_t first, std::uint64_t last) {
    // Ranges that overlap the new one or are adjacent to it become one with it.
    const auto begin =
        std::ranges::lower_bound(ranges_, first, {}, [](const Range& r) { return r.last + 1; });
    auto end = begin;
    Range joined{first, last};
    std::uint64_t known = 0;
    for (; end != ranges_.end() && end->first <= last + 1; ++end) {
        known += end->last - end->first + 1;
        joined = {std::min(joined.first, end->first), std::max(joined.last, end->last)};
    }
    if (begin == end) {
        ranges_.insert(begin, joined);
    } else {
        *begin = joined;
        ranges_.erase(begin + 1, end);
    }
    return joined.last - joined.first + 1 - known;
}

std::vector<Range> RangeSet::gaps(std::uint64_t first, std::uint64_t last) const {
    std::vector<Range> found;
    auto range = std::ranges::lower_bound(ranges_, first, {}, &Range::last);
    for (; range != ranges_.end() && range->first <= last; ++range) {
        if (range->first > first) {
            found.push_back({first, range->first - 1});
        }
        first = range->last + 1;
    }
    if (first <= last) {
        found.push_back({first, last});
    }
    return found;
}

}  // namespace hydra
