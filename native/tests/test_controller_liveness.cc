#include <doctest/doctest.h>

#include "common/controller_liveness.h"

using namespace hydra;

namespace {
constexpr std::int64_t kLostAtNs = 100 * kSecondNs;
}

TEST_CASE("Only what has been lost is connected again, a second later") {
    LostConnection it;
    CHECK(it.due_ns() == kNeverNs);
    it.lost(kLostAtNs);
    CHECK(it.due_ns() == kLostAtNs + kSecondNs);
    it.lost(kLostAtNs + kSecondNs / 2);
    CHECK(it.due_ns() == kLostAtNs + kSecondNs);
    it.found();
    CHECK(it.due_ns() == kNeverNs);
}

TEST_CASE("Three refusals in a row are the end") {
    LostConnection it;
    it.lost(kLostAtNs);
    for (const bool refused : {true, true, false, true, true}) {
        it.attempted(it.due_ns(), refused);
        CHECK_FALSE(it.controller_ended());
    }
    CHECK(it.due_ns() == kLostAtNs + 6 * kSecondNs);
    it.attempted(it.due_ns(), true);
    CHECK(it.controller_ended());
}

TEST_CASE("A new connection resets the refusals") {
    LostConnection it;
    it.lost(kLostAtNs);
    it.attempted(kLostAtNs, true);
    it.attempted(kLostAtNs, true);
    it.found();
    it.lost(kLostAtNs);
    it.attempted(kLostAtNs, true);
    CHECK_FALSE(it.controller_ended());
}
