#include <doctest/doctest.h>

#include <string>

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
    REQUIRE(batch.headers().size() == 1);
    CHECK(batch.headers()[0].epoch == 0x01010101);
    CHECK(batch.sizes()[0] == 30);
    batch.reset(1);
    CHECK(batch.headers().empty());
}

TEST_CASE("no batch is longer than the limit of all batches") {
    Batch batch;
    batch.reset(1'000'000);
    std::size_t count = 0;
    while (!batch.full()) {
        batch.add(24);
        ++count;
    }
    CHECK(count == kBatchLimit);
}
