#include <doctest/doctest.h>

#include "common/client_connections.h"

using namespace hydra;

TEST_CASE("a carrier has its clients until it ends") {
    Carriers carriers({1, 2, 3});
    const auto first = carriers.come("a", {.ids = {1, 2}, .pid = 7});
    CHECK(carriers.at("a") == first);
    CHECK(carriers.at("b") == nullptr);
    CHECK(carriers.present({}) == Ids{1, 2});
    CHECK(carriers.present({2, 3, 77}) == Ids{2});
    CHECK(carriers.carried(*first, {2, 3}) == Ids{2});
    carriers.left(*first);
    CHECK(first->ended);
    CHECK(carriers.present({}).empty());
    CHECK(carriers.carried(*first, {2, 3}).empty());
    CHECK(carriers.own(*first, {2, 3}) == Ids{2});
}

TEST_CASE("only a later process of the group takes a client") {
    Carriers carriers({1, 2, 3});
    carriers.come("a", {.ids = {2}, .incarnation = 1});
    CHECK(carriers.newer({.ids = {2}, .incarnation = 2}));
    CHECK_FALSE(carriers.newer({.ids = {2}, .incarnation = 1}));
    CHECK(carriers.newer({.ids = {1, 3}}));
    CHECK_FALSE(carriers.newer({.ids = {2, 3}}));
    CHECK_FALSE(carriers.newer({.ids = {4}}));
    CHECK_FALSE(carriers.newer({.ids = {}}));
}
