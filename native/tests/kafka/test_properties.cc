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
         {"delivery.timeout.ms", "retries", "sasl.password", "ssl.key.pem", "max.in.flight"}) {
        CHECK(refusal({{name, "1"}}).empty());
    }
}

TEST_CASE("an unknown one is refused with the nearest name, and never with its value") {
    const std::string said = refusal({{"sasl.pasword", "hunter2"}});
    CHECK(said.find("'sasl.pasword'") != std::string::npos);
    CHECK(said.find("did you mean 'sasl.password'?") != std::string::npos);
    CHECK(said.find("hunter2") == std::string::npos);
}

TEST_CASE("Hydra's own are refused, by either name") {
    CHECK(refusal({{"acks", "all"}}).find("settings.acks") != std::string::npos);
    CHECK(refusal({{"group.id", "x"}}).find("every subscriber") != std::string::npos);
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

TEST_CASE("a value that librdkafka refuses is told by its name alone") {
    const Properties config = {{"ssl.key.password", "x"}, {"linger.ms", "hunter2"}};
    try {
        open_kafka(RD_KAFKA_PRODUCER, config, [](rd_kafka_conf_t*, void*) {}, nullptr);
        FAIL("it was accepted");
    } catch (const TransportError& e) {
        const std::string said = e.what();
        CHECK(said.find("'linger.ms'") != std::string::npos);
        CHECK(said.find("hunter2") == std::string::npos);
    }
}
