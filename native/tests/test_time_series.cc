#include <doctest/doctest.h>

#include <vector>

#include "common/impairments.h"
#include "common/time_series.h"

using namespace hydra;

namespace {

using Counts = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a message belongs to the second of its batch, and is sent once") {
    ReceivedTimeSeries time_series;
    time_series.at(-5).record_us(7);
    time_series.at(kSecondNs - 1).record_us(7);
    time_series.at(kSecondNs).record_us(-3);
    time_series.at(3 * kSecondNs).record_us(9, 4);
    const std::vector<SecondCounts> seconds = time_series.take();
    REQUIRE(seconds.size() == 3);
    CHECK(seconds[0].second == 0);
    CHECK(seconds[0].messages == 2);
    CHECK(seconds[0].latency.counts == Counts{7, 2});
    CHECK(seconds[1].latency.min_us == -3);
    CHECK(seconds[2].second == 3);
    CHECK(seconds[2].messages == 4);
    CHECK(time_series.take().empty());
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
    Impairments impairments({{.kind = ImpairmentKind::absent, .begin_s = 1, .end_s = 2},
                             {.kind = ImpairmentKind::absent, .begin_s = 2, .end_s = 3}});
    CHECK(impairments.at(0) == Impairments::Change::none);
    CHECK(impairments.next_ns(0) == kSecondNs);
    CHECK(impairments.due(kSecondNs));
    CHECK(impairments.at(kSecondNs) == Impairments::Change::leave);
    CHECK(impairments.allowance(kSecondNs, 100) == 0);
    CHECK(impairments.at(2 * kSecondNs) == Impairments::Change::none);
    CHECK(impairments.absent());
    CHECK(impairments.at(3 * kSecondNs) == Impairments::Change::come_back);
    CHECK(impairments.allowance(3 * kSecondNs, 100) == 100);
    CHECK(impairments.next_ns(3 * kSecondNs) == kNeverNs);
}

TEST_CASE("a slow subscriber reads at its rate from the begin of its impairment on") {
    Impairments impairments({{.kind = ImpairmentKind::slow, .begin_s = 2, .end_s = 4, .rate = 10}});
    impairments.read(kSecondNs, 500);  // before it
    CHECK(impairments.at(2 * kSecondNs) == Impairments::Change::none);
    CHECK(impairments.allowance(2 * kSecondNs, 100) == 1);
    // A subscriber that may read waits for messages: the next change by time is the end.
    CHECK(impairments.next_ns(2 * kSecondNs) == 4 * kSecondNs);
    impairments.read(2 * kSecondNs, 1);
    CHECK(impairments.allowance(2 * kSecondNs, 100) == 0);
    CHECK(impairments.next_ns(2 * kSecondNs) == 2 * kSecondNs + kSecondNs / 10);
    CHECK(impairments.allowance(3 * kSecondNs, 100) == 1);  // what it did not use is lost
    CHECK(!impairments.end());
    CHECK(impairments.allowance(3 * kSecondNs, 100) == 100);
}
