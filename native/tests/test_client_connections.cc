#include <doctest/doctest.h>

#include "common/client_connections.h"

using namespace hydra;

TEST_CASE("a connection has its clients until its process ends") {
    ClientConnections connections({1, 2, 3});
    const auto first = connections.add("a", {.ids = {1, 2}, .pid = 7});
    CHECK(connections.at("a") == first);
    CHECK(connections.at("b") == nullptr);
    CHECK(connections.present({}) == Ids{1, 2});
    CHECK(connections.present({2, 3, 77}) == Ids{2});
    CHECK(connections.current_ids(*first, {2, 3}) == Ids{2});
    connections.left(*first);
    CHECK(first->ended);
    CHECK(connections.present({}).empty());
    CHECK(connections.current_ids(*first, {2, 3}).empty());
    CHECK(connections.reported_ids(*first, {2, 3}) == Ids{2});
}

TEST_CASE("only a later process of the group takes a client") {
    ClientConnections connections({1, 2, 3});
    connections.add("a", {.ids = {2}, .incarnation = 1});
    CHECK(connections.newer({.ids = {2}, .incarnation = 2}));
    CHECK_FALSE(connections.newer({.ids = {2}, .incarnation = 1}));
    CHECK(connections.newer({.ids = {1, 3}}));
    CHECK_FALSE(connections.newer({.ids = {2, 3}}));
    CHECK_FALSE(connections.newer({.ids = {4}}));
    CHECK_FALSE(connections.newer({.ids = {}}));
}
