#include <doctest/doctest.h>

#include "common/controller_liveness.h"

using namespace hydra;

namespace {
constexpr std::int64_t kLostAtNs = 100 * kSecondNs;
}

TEST_CASE("Only what has been lost is knocked at, a second later") {
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
        it.knocked(it.due_ns(), refused);
        CHECK_FALSE(it.gone());
    }
    CHECK(it.due_ns() == kLostAtNs + 6 * kSecondNs);
    it.knocked(it.due_ns(), true);
    CHECK(it.gone());
}

TEST_CASE("A new connection resets the refusals") {
    LostConnection it;
    it.lost(kLostAtNs);
    it.knocked(kLostAtNs, true);
    it.knocked(kLostAtNs, true);
    it.found();
    it.lost(kLostAtNs);
    it.knocked(kLostAtNs, true);
    CHECK_FALSE(it.gone());
}
