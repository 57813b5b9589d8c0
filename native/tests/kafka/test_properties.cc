#include <doctest/doctest.h>

#include "common/transport.h"
#include "kafka/config.h"
#include "kafka/properties.h"

using namespace hydra;

namespace {

std::string refusal(const Properties& given) {
    try {
        librdkafka_properties(given);
        return "";
    } catch (const TransportError& e) {
        return e.what();
    }
}

}  // namespace

TEST_CASE("the Java client's names are translated") {
    CHECK(librdkafka_properties({{"fetch.max.wait.ms", "5"}, {"security.protocol", "ssl"}}) ==
          Properties{{"fetch.wait.max.ms", "5"}, {"security.protocol", "ssl"}});
}

TEST_CASE("aliases, topic properties and those without a default are known") {
    for (const char* name :
         {"request.timeout.ms", "socket.nagle.disable", "sasl.password", "ssl.key.pem", "partitioner"}) {
        CHECK(refusal({{name, "1"}}).empty());
    }
}

TEST_CASE("an unknown one is refused with the nearest name, and never with its value") {
    const std::string message = refusal({{"sasl.pasword", "hunter2"}});
    CHECK(message.find("'sasl.pasword'") != std::string::npos);
    CHECK(message.find("did you mean 'sasl.password'?") != std::string::npos);
    CHECK(message.find("hunter2") == std::string::npos);
}

TEST_CASE("Hydra's own are refused, by either name") {
    CHECK(refusal({{"acks", "all"}}).find("settings.acks") != std::string::npos);
    CHECK(refusal({{"group.id", "x"}}).find("settings.group") != std::string::npos);
    CHECK(refusal({{"plugin.library.paths", "x"}}).find("cannot be set") != std::string::npos);
}

TEST_CASE("a user's property replaces a default, never what figures depend on") {
    KafkaSettings kafka{.bootstrap = "b:9", .topic = "t", .properties = {{"max.request.size", "2000000"}}};
    kafka.linger_ms = 2.5;
    kafka.acks = "all";
    const Properties config = producer_config(kafka, 24);
    CHECK(config.at("message.max.bytes") == "2000000");
    CHECK(config.at("bootstrap.servers") == "b:9");
    CHECK(config.at("acks") == "all");
    CHECK(config.at("linger.ms") == "2.5");
    CHECK(config.at("enable.idempotence") == "false");
}

TEST_CASE(
    "all clients get the same properties, and a user's property replaces one; a setting has its own name") {
    KafkaSettings kafka{.bootstrap = "b:9", .topic = "t"};
    CHECK(producer_config(kafka, 24).at("socket.nagle.disable") == "true");
    CHECK(consumer_config(kafka).at("queued.min.messages") == "100000");
    kafka.properties = {{"socket.nagle.disable", "false"}, {"queue.buffering.max.messages", "7"}};
    kafka.idempotence = true;
    kafka.retries = 3;
    kafka.max_in_flight = 2;
    kafka.buffer_memory = 2'097'152;
    kafka.delivery_timeout_ms = 4'000;
    const Properties config = producer_config(kafka, 24);
    CHECK(config.at("socket.nagle.disable") == "false");
    CHECK(config.at("queue.buffering.max.messages") == "7");
    CHECK(config.at("enable.idempotence") == "true");
    CHECK(config.at("retries") == "3");
    CHECK(config.at("max.in.flight") == "2");
    CHECK(config.at("queue.buffering.max.kbytes") == "2048");
    CHECK(config.at("delivery.timeout.ms") == "4000");
    CHECK(producer_config(kafka, 64 * 1024 * 1024).at("queue.buffering.max.kbytes") == "65536");
    CHECK(refusal({{"buffer.memory", "1"}}).find("settings.buffer_memory") != std::string::npos);
    CHECK(refusal({{"max.in.flight", "1"}}).find("settings.max_in_flight") != std::string::npos);
}

TEST_CASE("the error of a rejected value has only the property's name") {
    const Properties config = {{"ssl.key.password", "x"}, {"linger.ms", "hunter2"}};
    try {
        open_kafka(RD_KAFKA_PRODUCER, config, [](rd_kafka_conf_t*, void*) {}, nullptr);
        FAIL("it was accepted");
    } catch (const TransportError& e) {
        const std::string message = e.what();
        CHECK(message.find("'linger.ms'") != std::string::npos);
        CHECK(message.find("hunter2") == std::string::npos);
    }
}
