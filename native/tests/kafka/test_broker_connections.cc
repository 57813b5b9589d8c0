#include <doctest/doctest.h>

#include "kafka/broker_connections.h"

using hydra::BrokerConnections;

namespace {

const std::pair<std::string, int> kAddress{"127.0.0.1", 9092};

}  // namespace

TEST_CASE("a connection that is lost and made again is one disconnection") {
    BrokerConnections connections;
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    connections.watch(conf);
    // The library learns the broker's id from the broker itself.
    connections.change(-1, kAddress, "CONNECT", 1);
    connections.change(-1, kAddress, "UP", 2);
    connections.change(1, kAddress, "UPDATE", 3);
    connections.change(1, kAddress, "UP", 3);
    CHECK(connections.disconnections().empty());
    connections.change(1, kAddress, "DOWN", 10);
    connections.change(1, kAddress, "CONNECT", 11);
    connections.change(1, kAddress, "DOWN", 12);
    connections.change(1, kAddress, "CONNECT", 13);
    const auto [lost_ns, back_ns, attempts] = connections.disconnections().at(0);
    CHECK(lost_ns == 10);
    CHECK(back_ns == 0);
    CHECK(attempts == 2);
    connections.change(1, kAddress, "UP", 14);
    CHECK(connections.disconnections().size() == 1);
    CHECK(connections.disconnections().at(0).back_ns == 14);
    connections.begin_step();
    CHECK(connections.disconnections().empty());
    SUBCASE("the end of an address to begin with is none") {
        connections.change(-1, {"localhost", 9092}, "UP", 20);
        connections.change(-1, {"localhost", 9092}, "DOWN", 21);
    }
    SUBCASE("the end of the client is none") {
        connections.end();
        connections.change(1, kAddress, "DOWN", 22);
    }
    CHECK(connections.disconnections().empty());
    rd_kafka_conf_destroy(conf);
}
