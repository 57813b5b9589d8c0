#include <doctest/doctest.h>

#include <random>
#include <set>

#include "common/range_set.h"

using namespace hydra;

namespace {

std::vector<Range> runs(const std::set<std::uint64_t>& numbers) {
    std::vector<Range> found;
    for (const std::uint64_t number : numbers) {
        if (!found.empty() && found.back().last + 1 == number) {
            found.back().last = number;
        } else {
            found.push_back({number, number});
        }
    }
    return found;
}

}  // namespace

TEST_CASE("ranges that touch become one") {
    RangeSet set;
    CHECK(set.add(10, 19) == 10);
    CHECK(set.add(20, 29) == 10);
    CHECK(set.add(0, 4) == 5);
    CHECK(set.ranges() == std::vector<Range>{{0, 4}, {10, 29}});
    CHECK(set.add(5, 9) == 5);
    CHECK(set.ranges() == std::vector<Range>{{0, 29}});
    CHECK(set.add(3, 30) == 1);
    CHECK(set.add(7, 7) == 0);
}

TEST_CASE("gaps are what is not there") {
    RangeSet set;
    CHECK(set.gaps(3, 5) == std::vector<Range>{{3, 5}});
    set.add(4, 4);
    set.add(8, 9);
    CHECK(set.gaps(0, 10) == std::vector<Range>{{0, 3}, {5, 7}, {10, 10}});
    CHECK(set.gaps(4, 4).empty());
    CHECK(set.gaps(5, 8) == std::vector<Range>{{5, 7}});
}

TEST_CASE("it is the set of numbers, whatever the order") {
    std::mt19937_64 random(7);
    for (int round = 0; round < 200; ++round) {
        RangeSet set;
        std::set<std::uint64_t> model;
        for (int i = 0; i < 60; ++i) {
            const std::uint64_t first = random() % 120;
            const std::uint64_t last = first + random() % 8;
            std::uint64_t fresh = 0;
            for (std::uint64_t n = first; n <= last; ++n) {
                fresh += model.insert(n).second ? 1 : 0;
            }
            REQUIRE(set.add(first, last) == fresh);
            REQUIRE(set.ranges() == runs(model));
        }
        std::set<std::uint64_t> others;
        for (std::uint64_t n = 5; n <= 110; ++n) {
            if (!model.contains(n)) {
                others.insert(n);
            }
        }
        REQUIRE(set.gaps(5, 110) == runs(others));
    }
}
