#include <doctest/doctest.h>

#include <vector>

#include "common/receiving.h"

using namespace hydra;

TEST_CASE("absences beyond the most reach to the last return") {
    for (const std::size_t count : {kMaxAbsent - 1, kMaxAbsent, kMaxAbsent + 1, kMaxAbsent + 9}) {
        CAPTURE(count);
        std::vector<Interval> absent;
        for (std::size_t n = 0; n < count; ++n) {
            const auto begin_ns = static_cast<std::int64_t>(10 * n);
            add_absence(absent, {begin_ns, begin_ns + 5});
        }
        CHECK(absent.size() == std::min(count, kMaxAbsent));
        CHECK(absent.back().begin_ns == static_cast<std::int64_t>(10 * (absent.size() - 1)));
        CHECK(absent.back().end_ns == static_cast<std::int64_t>(10 * (count - 1) + 5));
    }
}
