#include <doctest/doctest.h>

#include "kafka/broker_connections.h"

using hydra::BrokerConnections;

namespace {

const std::pair<std::string, int> kAddress{"127.0.0.1", 9092};

}  // namespace

TEST_CASE("a connection in use is lost, one that a broker closes as idle is not") {
    constexpr std::int64_t kSecondNs = 1'000'000'000;
    BrokerConnections connections;
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    connections.watch(conf);
    connections.change(1, kAddress, "UP", 1);
    connections.sent(1, true, 2);
    bool lost = true;
    SUBCASE("used a moment before") {
        connections.received(1, kSecondNs);
        connections.change(1, kAddress, "DOWN", kSecondNs + kSecondNs / 4);
    }
    SUBCASE("with a request on its way") {
        connections.sent(1, true, 3);
        connections.received(1, 4);
        connections.change(1, kAddress, "DOWN", 40 * kSecondNs);
    }
    SUBCASE("idle") {
        connections.received(1, kSecondNs);
        connections.change(1, kAddress, "DOWN", 2 * kSecondNs);
        lost = false;
    }
    SUBCASE("idle after a request without an answer") {
        connections.received(1, 3);
        connections.sent(1, false, 4);
        connections.change(1, kAddress, "DOWN", 2 * kSecondNs);
        lost = false;
    }
    SUBCASE("an attempt to make it again that fails") {
        connections.received(1, 3);
        connections.change(1, kAddress, "DOWN", 2 * kSecondNs);
        connections.sent(1, true, 3 * kSecondNs);
        connections.change(1, kAddress, "DOWN", 3 * kSecondNs + 1);
        lost = false;
    }
    connections.note(RD_KAFKA_RESP_ERR__TRANSPORT, "Disconnected");
    connections.note(RD_KAFKA_RESP_ERR__TRANSPORT, "Connection refused");
    CHECK(connections.losses().count == (lost ? 1 : 0));
    CHECK(connections.losses().why == "Disconnected");
    connections.begin_step();
    CHECK(connections.losses().count == 0);
    rd_kafka_conf_destroy(conf);
}

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
