#include <doctest/doctest.h>

#include <vector>

#include "common/publisher_step.h"

using namespace hydra;

TEST_CASE("ranges beyond the limit are joined, and the report shows it") {
    struct Case {
        std::size_t count;
        bool joined;
        Range last;
    };
    for (const Case& it :
         {Case{0, false, {}}, Case{3, false, {20, 21}}, Case{4, true, {20, 31}}, Case{9, true, {20, 81}}}) {
        CAPTURE(it.count);
        std::vector<Range> ranges;
        for (std::uint64_t n = 0; n < it.count; ++n) {
            ranges.push_back({10 * n, 10 * n + 1});
        }
        CHECK(join_beyond(ranges, 3) == it.joined);
        CHECK(ranges.size() == std::min<std::size_t>(it.count, 3));
        if (it.count > 0) {
            CHECK(ranges.back() == it.last);
        }
    }
}
