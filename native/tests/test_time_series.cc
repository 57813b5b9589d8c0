#include <doctest/doctest.h>

#include <vector>

#include "common/impairments.h"
#include "common/time_series.h"

using namespace hydra;

namespace {

using Counts = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a message belongs to the second of its batch, and is sent once") {
    ReceivedTimeSeries course;
    course.at(-5).record_us(7);
    course.at(kSecondNs - 1).record_us(7);
    course.at(kSecondNs).record_us(-3);
    course.at(3 * kSecondNs).record_us(9, 4);
    const std::vector<SecondCounts> told = course.take();
    REQUIRE(told.size() == 3);
    CHECK(told[0].second == 0);
    CHECK(told[0].messages == 2);
    CHECK(told[0].latency.counts == Counts{7, 2});
    CHECK(told[1].latency.min_us == -3);
    CHECK(told[2].second == 3);
    CHECK(told[2].messages == 4);
    CHECK(course.take().empty());
}

TEST_CASE("the time series of several clients are added up") {
    TimeSeriesSum sum;
    sum.add({{.second = 1, .messages = 3, .latency = {{-4, 1, 7, 2}, -3, 7}}});
    sum.add({{.second = 0, .messages = 1, .latency = {{9, 1}, 9, 9}},
             {.second = 1, .messages = 2, .latency = {{7, 1, 40, 1}, 7, 40}}});
    sum.add(2, 5);
    const std::vector<SecondCounts> all = sum.take();
    REQUIRE(all.size() == 3);
    CHECK(all[0].messages == 1);
    CHECK(all[1].messages == 5);
    CHECK(all[1].latency.counts == Counts{-4, 1, 7, 3, 40, 1});
    CHECK(all[1].latency.min_us == -3);
    CHECK(all[1].latency.max_us == 40);
    CHECK(all[2].messages == 5);
    CHECK(sum.take().empty());
}

TEST_CASE("many seconds are several messages") {
    std::vector<SecondCounts> many(1025);
    CHECK(parts_of(many).size() == 2);
    CHECK(parts_of({}).empty());
    SecondCounts wide;
    wide.latency.counts.resize(30'000);
    CHECK(parts_of({wide, wide, wide}).size() == 3);
}

TEST_CASE("a disconnected subscriber leaves once and returns once") {
    Impairments spells({{.kind = ImpairmentKind::gone, .begin_s = 1, .end_s = 2},
                        {.kind = ImpairmentKind::gone, .begin_s = 2, .end_s = 3}});
    CHECK(spells.at(0) == Impairments::Change::none);
    CHECK(spells.next_ns(0) == kSecondNs);
    CHECK(spells.due(kSecondNs));
    CHECK(spells.at(kSecondNs) == Impairments::Change::leave);
    CHECK(spells.allowance(kSecondNs, 100) == 0);
    CHECK(spells.at(2 * kSecondNs) == Impairments::Change::none);
    CHECK(spells.gone());
    CHECK(spells.at(3 * kSecondNs) == Impairments::Change::come_back);
    CHECK(spells.allowance(3 * kSecondNs, 100) == 100);
    CHECK(spells.next_ns(3 * kSecondNs) == kNeverNs);
}

TEST_CASE("a slow subscriber reads at its rate from the begin of its impairment on") {
    Impairments spells({{.kind = ImpairmentKind::slow, .begin_s = 2, .end_s = 4, .rate = 10}});
    spells.read(kSecondNs, 500);  // before it
    CHECK(spells.at(2 * kSecondNs) == Impairments::Change::none);
    CHECK(spells.allowance(2 * kSecondNs, 100) == 1);
    // A subscriber that may read waits for messages: the next change by time is the end.
    CHECK(spells.next_ns(2 * kSecondNs) == 4 * kSecondNs);
    spells.read(2 * kSecondNs, 1);
    CHECK(spells.allowance(2 * kSecondNs, 100) == 0);
    CHECK(spells.next_ns(2 * kSecondNs) == 2 * kSecondNs + kSecondNs / 10);
    CHECK(spells.allowance(3 * kSecondNs, 100) == 1);  // what it did not use is lost
    CHECK(!spells.end());
    CHECK(spells.allowance(3 * kSecondNs, 100) == 100);
}
