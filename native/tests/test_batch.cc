#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/batch.h"

using namespace hydra;

TEST_CASE("short messages are left out but count against the limit") {
    Batch batch;
    batch.reset(3);
    std::string message(30, '\1');
    batch.add(message.data(), 23);
    batch.add(message.data(), 30);
    CHECK_FALSE(batch.full());
    batch.add(message.data(), 0);
    CHECK(batch.full());
    REQUIRE(batch.runs().size() == 1);
    CHECK(batch.runs()[0].first.epoch == 0x01010101);
    CHECK(batch.runs()[0].size == 30);
    batch.reset(1);
    CHECK(batch.runs().empty());
    batch.add(message.data(), 0);
    CHECK(batch.runs().empty());
}

TEST_CASE("no batch is longer than the limit of all batches") {
    Batch batch;
    batch.reset(1'000'000);
    std::size_t count = 0;
    while (!batch.full()) {
        const Header header{1, 0, 2 * count, 0};
        batch.add(&header, kHeaderBytes);
        ++count;
    }
    CHECK(count == kBatchLimit);
    CHECK(batch.runs().size() == kBatchLimit);
}

TEST_CASE("a run ends where anything but the sequence changes") {
    Batch batch;
    const auto add = [&](const Header& header, std::size_t size = kHeaderBytes) { batch.add(&header, size); };
    add({1, 2, 10, 5});
    add({1, 2, 11, 5});
    add({1, 2, 12, 5});
    add({1, 2, 13, 6});
    add({1, 2, 14, 6}, 25);
    add({1, 2, 14, 6}, 25);
    add({1, 2, 16, 6}, 25);
    add({1, 3, 17, 6}, 25);
    add({2, 3, 18, 6}, 25);
    const std::vector<Run> runs(batch.runs().begin(), batch.runs().end());
    CHECK(runs == std::vector<Run>{{{1, 2, 10, 5}, 3, 24},
                                   {{1, 2, 13, 6}, 1, 24},
                                   {{1, 2, 14, 6}, 1, 25},
                                   {{1, 2, 14, 6}, 1, 25},
                                   {{1, 2, 16, 6}, 1, 25},
                                   {{1, 3, 17, 6}, 1, 25},
                                   {{2, 3, 18, 6}, 1, 25}});
    CHECK(runs[0].last_sequence() == 12);
    CHECK(runs[0].bytes() == 72);
    CHECK(runs[0].continued_by(runs[1].first));
    CHECK_FALSE(runs[2].continued_by(runs[3].first));
}
