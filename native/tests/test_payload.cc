#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "common/payload.h"

using namespace hydra;

TEST_CASE("zeros are one room that is used again") {
    PayloadBlock block;
    block.set(Payload::zeros, 100, 3, 1'000'000);
    char* room = block.next(3);
    CHECK(std::all_of(room, room + 300, [](char byte) { return byte == 0; }));
    CHECK(block.next(3) == room);
    CHECK(block.next(1) == room);
    CHECK(block.next(2) == room + 100);
    CHECK(block.next(1) == room);
}

TEST_CASE("random messages differ, also after a step of another size") {
    PayloadBlock block;
    for (const std::uint64_t size : {100, 24, 1000}) {
        block.set(Payload::random, size, 2, 2'000'000);
        std::set<std::string> seen;
        for (int i = 0; i < 500; ++i) {
            const char* room = block.next(2);
            seen.emplace(room, size);
            seen.emplace(room + size, size);
        }
        CHECK(seen.size() == 1000);
    }
    block.set(Payload::zeros, 1000, 2, 0);
    const char* room = block.next(2);
    CHECK(std::all_of(room, room + 2000, [](char byte) { return byte == 0; }));
}

TEST_CASE("a message larger than the block has room") {
    PayloadBlock block;
    block.set(Payload::random, 5'000'001, 1, 1'000'000);
    char* room = block.next(1);
    CHECK(block.next(1) == room);
    CHECK(std::count(room, room + 5'000'001, 0) < 50'000);
}
