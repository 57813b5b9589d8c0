#include <doctest/doctest.h>

#include <string>

#include "common/protocol.h"
#include "common/reader.h"

using namespace hydra;

namespace {

void refused(const std::string& frame) {
    CAPTURE(frame.substr(0, 200));
    CHECK_THROWS_AS(decode(frame), ProtocolError);
}

std::string configure(const std::string& settings) {
    return R"({"type":"configure","v":1,"epoch":1,"settings":{)" + settings +
           R"(},"publishers":[],"probe":true})";
}

Settings settings_of(const std::string& settings) {
    return std::get<Configure>(decode(configure(settings))).settings;
}

}  // namespace

TEST_CASE("defaults stand for missing fields, white space and order are free") {
    const auto it = std::get<Ping>(decode(" { \"time_ns\" : 7 , \"v\":1,\n\"type\":\"ping\" } "));
    CHECK(it.time_ns == 7);
    CHECK(it.ids.empty());
    const Settings settings = settings_of("");
    CHECK_FALSE(settings.rate);
    CHECK(settings.msg_batch == 100);
    CHECK(settings.message_size == 24);
    CHECK(settings.sndhwm == 1000);
    CHECK(settings.acks == "1");
}

TEST_CASE("a number with a fraction may be written in any way") {
    CHECK(settings_of(R"("rate":10000)").rate == 10'000.0);
    CHECK(settings_of(R"("rate":1e4)").rate == 10'000.0);
    CHECK(settings_of(R"("rate":10000.0)").rate == 10'000.0);
}

TEST_CASE("a whole number may not be written with a fraction, an exponent or as something else") {
    for (const char* value : {"1.0", "1e0", "\"1\"", "true", "null", "[1]", "-1", "18446744073709551616"}) {
        refused(configure(std::string(R"("msg_batch":)") + value));
        refused(std::string(R"({"type":"ping","v":1,"time_ns":)") + value + "}");
    }
    refused(R"({"type":"ping","v":1,"time_ns":9223372036854775808})");
    CHECK(std::get<Ping>(decode(R"({"type":"ping","v":1,"time_ns":9223372036854775807})")).time_ns ==
          INT64_MAX);
}

TEST_CASE("settings of others are ignored, unknown fields elsewhere are not") {
    CHECK_NOTHROW(settings_of(R"("colour":"red")"));
    refused(R"({"type":"stop","v":1,"epoch":1,"stop_at_ns":1,"colour":"red"})");
    refused(
        R"({"type":"finish","v":1,"epoch":1,"publishers":[{"publisher":0,"sent":1,"x":1}],"drain_max_s":1})");
    refused(
        R"({"type":"configure","v":1,"epoch":1,"settings":{},"publishers":[{"publisher":0,"x":1}],"probe":true})");
}

TEST_CASE("null only where it says so") {
    CHECK_NOTHROW(settings_of(R"("batch_bytes":null,"receive_rate":null,"reconnect_rate":null)"));
    refused(configure(R"("rate":null)"));
    refused(configure(R"("nodrop":null)"));
    refused(R"({"type":"quit","v":1,"ids":null})");
}

TEST_CASE("a refusal says where") {
    const auto reason = [](const std::string& frame) -> std::string {
        try {
            decode(frame);
            return "";
        } catch (const ProtocolError& e) {
            return e.what();
        }
    };
    CHECK(reason(configure(R"("rate":0)")) == "settings: rate: a number out of its range");
    CHECK(reason(R"({"type":"stop","v":1,"epoch":1})") == "the field is missing: stop_at_ns");
    CHECK(reason(R"({"type":"stop","v":1,"epoch":-1,"stop_at_ns":1})") ==
          "epoch: not a whole number in its range");
}

TEST_CASE("a report has one body, and its words are known ones") {
    const auto read = [](const std::string& bodies) {
        const auto value = nlohmann::json::parse(R"({"epoch":1,)" + bodies + "}");
        Reader fields(value);
        Report report;
        Report::describe(report, fields);
        fields.nothing_else();
        return report;
    };
    const std::string nothing = R"("first_ns":0,"last_ns":0,"bytes":0,"usage":{})";
    const std::string histogram = R"({"counts":[],"min_us":0,"max_us":0})";
    const std::string sent =
        R"({"sent":5,"acknowledged":5,"failed":0,"lag":)" + histogram + "," + nothing + "}";
    const auto received = [&](const std::string& drain) {
        return R"({"ledgers":[],"batches":0,"first_batch":0,"stale":0,"latency":)" + histogram + "," +
               nothing + R"(,"drain":)" + drain + "}";
    };
    CHECK(std::get<PublisherReport>(read(R"("publisher":)" + sent).body).sent == 5);
    const auto quiet = std::get<SubscriberReport>(read(R"("subscriber":)" + received(R"("quiet")")).body);
    CHECK(quiet.drain == DrainEnd::quiet);
    CHECK(quiet.felt);
    CHECK_THROWS_AS(read(R"("subscriber":)" + received(R"("sudden")")), ProtocolError);
    CHECK_THROWS_AS(read(R"("subscriber":)" + received("2")), ProtocolError);
    CHECK_THROWS_AS(read(R"("publisher":null,"subscriber":null)"), ProtocolError);
    CHECK_THROWS_AS(read(R"("publisher":)" + sent + R"(,"subscriber":)" + received(R"("quiet")")),
                    ProtocolError);
}

TEST_CASE("limits of settings") {
    refused(configure(R"("reconnect_rate":100.5)"));
    refused(configure(R"("reconnect_rate":0)"));
    refused(configure(R"("receive_rate":0.0)"));
    refused(configure(R"("linger_ms":900001)"));
    refused(configure(R"("batch_bytes":2147483648)"));
    refused(configure(R"("rcvhwm":2147483648)"));
    refused(configure(R"("rate":true)"));
    CHECK(settings_of(R"("batch_bytes":2147483647)").batch_bytes == INT32_MAX);
}

TEST_CASE("ranges rise and do not overlap") {
    const auto finish = [](const std::string& ranges) {
        return R"({"type":"finish","v":1,"epoch":1,"publishers":[{"publisher":0,"sent":9,"unacknowledged":)" +
               ranges + R"(}],"drain_max_s":1})";
    };
    CHECK_NOTHROW(decode(finish("[[0,0],[1,3]]")));
    refused(finish("[[3,1]]"));
    refused(finish("[[0,3],[3,4]]"));
    refused(finish("[[5,6],[1,2]]"));
    refused(finish("[[1]]"));
    refused(finish("[[1,2,3]]"));
    refused(finish("[1]"));
}

TEST_CASE("a partition is a number in its own writing") {
    const auto finish = [](const std::string& key) {
        return R"({"type":"finish","v":1,"epoch":1,"publishers":[],"drain_max_s":1,"end_offsets":{")" + key +
               R"(":5}})";
    };
    CHECK(std::get<Finish>(decode(finish("12"))).end_offsets == Offsets{{12, 5}});
    for (const char* key : {"", "-1", "01", "+1", " 1", "1.0", "x", "2147483648"}) {
        refused(finish(key));
    }
}

TEST_CASE("oversized and deeply nested frames are refused before they are parsed") {
    refused(R"({"type":"quit","v":1})" + std::string(kMaxMessageBytes, ' '));
    CHECK_NOTHROW(decode(R"({"type":"quit","v":1})" + std::string(1000, ' ')));
    refused(std::string(kMaxMessageBytes, '['));
    refused(R"({"type":"quit","v":1,"ids":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}");
    // Brackets in a text are no nesting.
    CHECK_NOTHROW(decode(R"({"type":"welcome","v":1,"run":"\"[[[[[[[[[[[[[[[[[[[[[[[[[","silence_s":1})"));
}

TEST_CASE("JSON itself is checked") {
    refused("");
    refused("{\"type\":\"quit\",\"v\":1}{\"type\":\"quit\",\"v\":1}");
    refused("{\"type\":\"quit\",\"v\":1,}");
    refused("{\"type\":\"welcome\",\"v\":1,\"run\":\"\xff\",\"silence_s\":1}");
    refused("{'type':'quit','v':1}");
    refused("{\"type\":\"quit\",\"v\":NaN}");
}

TEST_CASE("a text that is no UTF-8 is still written as JSON") {
    const std::string frame = encode(Error{.ids = {1}, .epoch = 0, .message = "h\xff\"\n"}, 1);
    CHECK(frame.find("\\n") != std::string::npos);
    CHECK(frame.find('\xff') == std::string::npos);
}
