#include <doctest/doctest.h>

#include "common/command_replies.h"
#include "common/registration.h"
#include "common/reply_aggregation.h"

using namespace hydra;

TEST_CASE("registrations are sent together, at once when no other client can join") {
    PendingRegistrations joining({1, 2, 3});
    CHECK(joining.due_ns() == kNeverNs);
    joining.add(2, 0);
    joining.add(1, 5);
    CHECK(joining.due_ns() == kGatherNs);
    CHECK(joining.take(kGatherNs - 1).empty());
    CHECK(joining.take(kGatherNs) == Ids{1, 2});
    joining.add(3, kGatherNs);
    CHECK(joining.take(kGatherNs) == Ids{3});
}

TEST_CASE("registrations are resent until a welcome names the clients") {
    PendingRegistrations joining({1, 2, 3, 4});
    joining.add(1, 0);
    joining.add(2, 0);
    joining.add(3, 0);
    joining.hurry(0);
    CHECK(joining.take(0) == Ids{1, 2, 3});
    CHECK(joining.due_ns() == kResendEveryNs);
    joining.named(2);
    CHECK(joining.take(kResendEveryNs) == Ids{1, 3});
    joining.left(3);
    CHECK(joining.take(2 * kResendEveryNs) == Ids{1});
    joining.named(1);
    CHECK(joining.is_named(1));
    CHECK(joining.take(3 * kResendEveryNs).empty());
    CHECK(joining.due_ns() == kNeverNs);
    joining.left(1);
    CHECK_FALSE(joining.is_named(1));
}

TEST_CASE("a welcome of a predecessor is not its successor's") {
    PendingRegistrations joining({1});
    joining.add(1, 0);
    CHECK(joining.take(0) == Ids{1});
    joining.left(1);
    joining.add(1, 1);
    CHECK(joining.take(1) == Ids{1});
    joining.named(1);
    CHECK_FALSE(joining.is_named(1));
    CHECK(joining.take(1 + kResendEveryNs) == Ids{1});
    joining.named(1);
    CHECK(joining.is_named(1));
}

TEST_CASE("a welcome of a client that was never registered is ignored") {
    PendingRegistrations joining({1});
    joining.add(1, 0);
    joining.named(1);
    CHECK_FALSE(joining.is_named(1));
    CHECK(joining.take(0) == Ids{1});
}
