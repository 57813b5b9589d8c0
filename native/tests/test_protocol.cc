#include <doctest/doctest.h>

#include <string>

#include "common/json_reader.h"
#include "common/protocol.h"
#include "common/system_fields.h"

using namespace hydra;

namespace {

void refused(const std::string& frame) {
    CAPTURE(frame.substr(0, 200));
    CHECK_THROWS_AS(decode(frame), ProtocolError);
}

std::string configure(const std::string& settings) {
    const std::string burst = settings.find("burst") == std::string::npos ? R"("burst":100)" : "";
    return R"({"type":"configure","epoch":1,"number":1,"settings":{)" + burst +
           (burst.empty() || settings.empty() ? "" : ",") + settings + R"(},"publishers":[],"probe":true})";
}

Settings settings_of(const std::string& settings) {
    return std::get<Configure>(decode(configure(settings))).settings;
}

}  // namespace

TEST_CASE("defaults stand for missing fields, white space and order are free") {
    const auto it = std::get<Ping>(decode(" { \"time_ns\" : 7 ,\n\"type\":\"ping\" } "));
    CHECK(it.time_ns == 7);
    CHECK(it.ids.empty());
    const Settings settings = settings_of("");
    CHECK_FALSE(settings.rate);
    CHECK(settings.message_size == 24);
    CHECK(settings.payload == Payload::zeros);
    CHECK(std::get<Configure>(decode(configure(""))).group.empty());
    CHECK_FALSE(std::get<Configure>(decode(configure(""))).system);
}

TEST_CASE("a number with a fraction may be written in any way") {
    CHECK(settings_of(R"("rate":10000)").rate == 10'000.0);
    CHECK(settings_of(R"("rate":1e4)").rate == 10'000.0);
    CHECK(settings_of(R"("rate":10000.0)").rate == 10'000.0);
}

TEST_CASE("a whole number may not be written with a fraction, an exponent or as something else") {
    for (const char* value : {"1.0", "1e0", "\"1\"", "true", "null", "[1]", "-1", "18446744073709551616"}) {
        refused(configure(std::string(R"("burst":)") + value));
        refused(std::string(R"({"type":"ping","time_ns":)") + value + "}");
    }
    refused(R"({"type":"ping","time_ns":9223372036854775808})");
    CHECK(std::get<Ping>(decode(R"({"type":"ping","time_ns":9223372036854775807})")).time_ns == INT64_MAX);
}

TEST_CASE("settings of others are ignored, unknown fields elsewhere are not") {
    CHECK_NOTHROW(settings_of(R"("colour":"red")"));
    refused(R"({"type":"stop","epoch":1,"number":1,"stop_at_ns":1,"colour":"red"})");
    refused(
        R"({"type":"finish","epoch":1,"number":1,"publishers":[{"publisher":0,"sent":1,"x":1}],"drain_max_s":1})");
    refused(
        R"({"type":"configure","epoch":1,"number":1,"settings":{"burst":1},"publishers":[{"publisher":0,"x":1}],"probe":true})");
}

TEST_CASE("null only where the description allows it") {
    CHECK_NOTHROW(settings_of(R"("receive_rate":null,"reconnect_rate":null)"));
    refused(configure(R"("rate":null)"));
    refused(configure(R"("burst":null)"));
    refused(R"({"type":"quit","ids":null})");
}

TEST_CASE("the error of a rejected frame names the place") {
    const auto reason = [](const std::string& frame) -> std::string {
        try {
            decode(frame);
            return "";
        } catch (const ProtocolError& e) {
            return e.what();
        }
    };
    CHECK(reason(configure(R"("rate":0)")) == "settings: rate: a number out of its range");
    CHECK(reason(R"({"type":"stop","epoch":1,"number":1})") == "the field is missing: stop_at_ns");
    CHECK(reason(R"({"type":"stop","epoch":-1,"stop_at_ns":1})") == "epoch: not a whole number in its range");
}

TEST_CASE("a report is a publisher's") {
    const auto read = [](const std::string& bodies) {
        const auto value = nlohmann::json::parse(R"({"epoch":1,)" + bodies + "}");
        JsonReader fields(value);
        Report report;
        Report::describe(report, fields);
        fields.nothing_else();
        return report;
    };
    const std::string nothing = R"("first_ns":0,"last_ns":0,"bytes":0,"usage":{})";
    const std::string histogram = R"({"counts":[],"min_us":0,"max_us":0})";
    const std::string sent =
        R"({"sent":5,"acknowledged":5,"failed":0,"lag":)" + histogram + "," + nothing + "}";
    CHECK(read(R"("publisher":)" + sent).publisher.sent == 5);
    CHECK(read(R"("publisher":)" + sent + R"(,"subscriber":null)").publisher.sent == 5);
    CHECK_THROWS_AS(read(R"("publisher":null,"subscriber":null)"), ProtocolError);
    CHECK_THROWS_AS(read(R"("publisher":)" + sent + R"(,"subscriber":{})"), ProtocolError);
}

TEST_CASE("the words of a report are known ones") {
    const auto drain = [](const std::string& word) {
        const nlohmann::json value = nlohmann::json::parse(
            R"({"ledgers":[],"batches":0,"first_batch":0,"first_ns":0,"last_ns":0,"bytes":0,"stale":0,)"
            R"("latency":{"counts":[],"min_us":0,"max_us":0},"usage":{},"drain":)" +
            word + "}");
        JsonReader fields(value);
        SubscriberReport report;
        SubscriberReport::describe(report, fields);
        return report;
    };
    CHECK(drain(R"("quiet")").drain == DrainEnd::quiet);
    CHECK(drain(R"("quiet")").felt);
    CHECK_THROWS_AS(drain(R"("sudden")"), ProtocolError);
    CHECK_THROWS_AS(drain("2"), ProtocolError);
}

TEST_CASE("limits of settings") {
    refused(configure(R"("reconnect_rate":100.5)"));
    refused(configure(R"("reconnect_rate":0)"));
    refused(configure(R"("receive_rate":0.0)"));
    refused(configure(R"("burst":0)"));
    refused(configure(R"("payload":"noise")"));
    refused(configure(R"("rate":true)"));
}

namespace {

// A system's object in a command.
struct Part {
    std::uint64_t depth = 7;
    std::map<std::int32_t, std::int64_t> ends;

    static void describe(auto& it, auto& fields) {
        fields.optional("depth", it.depth, Whole{1, 9});
        fields.optional("ends", it.ends);
    }
};

Part part_of(const std::string& system) {
    const std::string frame =
        R"({"type":"finish","epoch":1,"number":1,"publishers":[],"drain_max_s":1,"system":)";
    return read_system<Part>(std::get<Finish>(decode(frame + system + "}")).system);
}

std::string complaint_about(const std::string& system) {
    try {
        part_of(system);
        return "";
    } catch (const TransportError& e) {
        return e.what();
    }
}

}  // namespace

TEST_CASE("a system reads its part of a command into a type of its own") {
    CHECK(part_of("null").depth == 7);
    CHECK(part_of("{}").depth == 7);
    CHECK(part_of(R"({"depth":3})").depth == 3);
    CHECK(complaint_about(R"({"depth":10})") ==
          "in the system's part of the command: depth: not a whole number in its range");
    CHECK(complaint_about(R"({"dept":3})") == "in the system's part of the command: an unknown field: dept");
    refused(R"({"type":"finish","epoch":1,"number":1,"publishers":[],"drain_max_s":1,"system":[]})");
}

TEST_CASE("ids are numbers and pairs, and rise") {
    const auto ids = [](const std::string& written) {
        return std::get<Quit>(decode(R"({"type":"quit","ids":)" + written + "}")).ids;
    };
    CHECK(ids("[]").empty());
    CHECK(ids("[[0,2],5,[7,8],4294967295]") == Ids{0, 1, 2, 5, 7, 8, 4294967295});
    CHECK(ids("[1,2]") == Ids{1, 2});
    CHECK(ids("[[4294967294,4294967295]]") == Ids{4294967294, 4294967295});
    for (const char* written : {"[2,1]", "[1,1]", "[[2,1]]", "[[1,3],3]", "[[1]]", "[[1,2,3]]", "[-1]",
                                "[\"1\"]", "[[0,4294967295]]", "[1,[4,[5,6]]]"}) {
        refused(std::string(R"({"type":"quit","ids":)") + written + "}");
    }
}

TEST_CASE("ranges rise and do not overlap") {
    const auto finish = [](const std::string& ranges) {
        return R"({"type":"finish","epoch":1,"number":1,"publishers":[{"publisher":0,"sent":9,"unacknowledged":)" +
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

TEST_CASE("a key that stands for a number is that number in its own writing") {
    const auto ends = [](const std::string& key) { return R"({"ends":{")" + key + R"(":5}})"; };
    CHECK(part_of(ends("12")).ends == std::map<std::int32_t, std::int64_t>{{12, 5}});
    for (const char* key : {"", "-1", "01", "+1", " 1", "1.0", "x", "2147483648"}) {
        CAPTURE(key);
        CHECK_FALSE(complaint_about(ends(key)).empty());
    }
}

TEST_CASE("oversized and deeply nested frames are refused before they are parsed") {
    refused(R"({"type":"quit"})" + std::string(kMaxMessageBytes, ' '));
    CHECK_NOTHROW(decode(R"({"type":"quit"})" + std::string(1000, ' ')));
    refused(std::string(kMaxMessageBytes, '['));
    refused(R"({"type":"quit","ids":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}");
    // Brackets in a text are no nesting.
    CHECK_NOTHROW(decode(R"({"type":"welcome","v":3,"run":"\"[[[[[[[[[[[[[[[[[[[[[[[[[","silence_s":1})"));
}

TEST_CASE("JSON itself is checked") {
    refused("");
    refused("{\"type\":\"quit\",\"v\":2}{\"type\":\"quit\",\"v\":2}");
    refused("{\"type\":\"quit\",\"v\":2,}");
    refused("{\"type\":\"welcome\",\"v\":2,\"run\":\"\xff\",\"silence_s\":1}");
    refused("{'type':'quit','v':1}");
    refused("{\"type\":\"quit\",\"v\":NaN}");
}

TEST_CASE("a text that is no UTF-8 is still written as JSON") {
    const std::string frame = encode(Error{.ids = {1}, .epoch = 0, .message = "h\xff\"\n"}, 1);
    CHECK(frame.find("\\n") != std::string::npos);
    CHECK(frame.find('\xff') == std::string::npos);
}
