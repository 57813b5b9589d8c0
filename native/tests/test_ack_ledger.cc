#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "common/ack_ledger.h"

using namespace hydra;

TEST_CASE("acknowledged in order") {
    AckLedger ledger;
    ledger.accept(1000);
    for (std::uint64_t first = 0; first < 1000; first += 100) {
        ledger.acknowledge(first, 100);
    }
    CHECK(ledger.sent() == 1000);
    CHECK(ledger.acknowledged() == 1000);
    CHECK(ledger.pending() == 0);
    CHECK(ledger.unacknowledged().empty());
}

TEST_CASE("nothing was sent") {
    CHECK(AckLedger(3).unacknowledged().empty());
}

TEST_CASE("what has no answer, or a bad one, is unacknowledged") {
    AckLedger ledger;
    ledger.accept(100);
    ledger.acknowledge(0, 10);
    ledger.fail(10, 5);
    ledger.acknowledge(20, 60);
    CHECK(ledger.acknowledged() == 70);
    CHECK(ledger.failed() == 5);
    CHECK(ledger.pending() == 25);
    CHECK(ledger.unacknowledged() == std::vector<Range>{{10, 19}, {80, 99}});
}

TEST_CASE("the first answer counts") {
    AckLedger ledger;
    ledger.accept(30);
    ledger.fail(0, 10);
    ledger.acknowledge(5, 10);
    ledger.fail(12, 6);
    CHECK(ledger.acknowledged() == 5);
    CHECK(ledger.failed() == 13);
    CHECK(ledger.repeated() == 8);
    CHECK(ledger.unacknowledged() == std::vector<Range>{{0, 9}, {15, 29}});
}

TEST_CASE("an answer to what was never accepted changes nothing") {
    AckLedger ledger(2);
    ledger.accept(5);
    ledger.acknowledge(7, 3);
    ledger.acknowledge(4, 3);  // 4, 6, 8
    CHECK(ledger.acknowledged() == 1);
    CHECK(ledger.repeated() == 5);
    CHECK(ledger.unacknowledged() == std::vector<Range>{{0, 3}});
}

TEST_CASE("partitions answer independently of each other") {
    AckLedger ledger(3);
    ledger.accept(10);
    ledger.acknowledge(1, 3);  // 1, 4, 7
    CHECK(ledger.unacknowledged() == std::vector<Range>{{0, 0}, {2, 3}, {5, 6}, {8, 9}});
    ledger.acknowledge(0, 2);  // 0, 3
    ledger.fail(2, 1);
    ledger.acknowledge(5, 2);  // 5, 8
    CHECK(ledger.acknowledged() == 7);
    CHECK(ledger.unacknowledged() == std::vector<Range>{{2, 2}, {6, 6}, {9, 9}});
}

TEST_CASE("it is exact whatever the order of the answers") {
    std::mt19937_64 random(11);
    for (int round = 0; round < 300; ++round) {
        const std::uint64_t partitions = 1 + random() % 5;
        const std::uint64_t sent = random() % 200;
        AckLedger ledger(partitions);
        std::vector<int> answers(sent);  // 0 none, 1 good, 2 bad
        std::uint64_t accepted = 0;
        std::uint64_t repeated = 0;
        for (int i = 0; i < 40; ++i) {
            const std::uint64_t more = std::min<std::uint64_t>(random() % 20, sent - accepted);
            ledger.accept(more);
            accepted += more;
            const bool bad = random() % 4 == 0;
            const std::uint64_t first = random() % (sent + 1);
            const std::uint64_t count = 1 + random() % 6;
            for (std::uint64_t k = 0; k < count; ++k) {
                const std::uint64_t sequence = first + k * partitions;
                if (sequence < accepted && answers[sequence] == 0) {
                    answers[sequence] = bad ? 2 : 1;
                } else {
                    ++repeated;
                }
            }
            bad ? ledger.fail(first, count) : ledger.acknowledge(first, count);
        }
        REQUIRE(ledger.acknowledged() == static_cast<std::uint64_t>(std::ranges::count(answers, 1)));
        REQUIRE(ledger.failed() == static_cast<std::uint64_t>(std::ranges::count(answers, 2)));
        REQUIRE(ledger.repeated() == repeated);
        std::vector<Range> open;
        for (std::uint64_t n = 0; n < accepted; ++n) {
            if (answers[n] == 1) {
                continue;
            }
            if (!open.empty() && open.back().last + 1 == n) {
                open.back().last = n;
            } else {
                open.push_back({n, n});
            }
        }
        REQUIRE(ledger.unacknowledged() == open);
    }
}
