#include <doctest/doctest.h>

#include "common/bitmap.h"

using namespace hydra;

namespace {

std::string of(std::initializer_list<Range> runs) {
    SequenceSet set;
    for (const Range& run : runs) {
        set.add(run.first, run.last);
    }
    return bitmap(set).value();
}

}  // namespace

TEST_CASE("a bitmap begins with the least significant bit and has no zeros at its end") {
    CHECK(of({}).empty());
    CHECK(of({{0, 0}}) == "AQ==");
    CHECK(of({{7, 7}}) == "gA==");
    CHECK(of({{0, 7}}) == "/w==");
    CHECK(of({{8, 8}}) == "AAE=");
    CHECK(of({{0, 9}, {12, 14}}) == "/3M=");
    CHECK(of({{12, 14}, {0, 9}}) == "/3M=");
    CHECK(of({{0, 23}}) == "////");
    CHECK(of({{0, 24}}) == "////AQ==");
}

TEST_CASE("a bitmap holds as much as fits into half of a message") {
    SequenceSet set;
    set.add(kMaxBitmapSequences - 1, kMaxBitmapSequences - 1);
    CHECK(kMaxBitmapSequences == 1'572'864);
    CHECK(bitmap(set).value().size() == kMaxBitmapCharacters);
    set.add(kMaxBitmapSequences, kMaxBitmapSequences);
    CHECK(!bitmap(set));
    SequenceSet far;
    far.add((std::uint64_t{1} << 63) - 1, (std::uint64_t{1} << 63) - 1);
    CHECK(!bitmap(far));
}
