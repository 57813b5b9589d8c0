// The wire bytes of tests/golden: the encoder writes what the files contain, and the decoder reads them.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "common/header.h"
#include "common/json_reader.h"
#include "common/json_writer.h"
#include "common/protocol.h"
#include "golden.h"

using namespace hydra;

namespace {

constexpr const char* kTime = "time:[4026531834]";
constexpr const char* kNetwork = "net:[4026531840]";
constexpr const char* kBoot = "b25a1fd9-3bd7-4d0b-9b1d-2c5a9f5a3f60";
constexpr std::int64_t kGoldenStart = 1'767'225'600'000'000'000;
constexpr std::int64_t kStop = kGoldenStart + 10'000'000'000;
constexpr std::uint64_t kLargest = INT64_MAX;

struct Written {
    FromClient message;
    std::uint64_t seq;
};

PublisherReport zmq_publisher_report() {
    PublisherReport it;
    it.sent = it.acknowledged = 100'000;
    it.first_ns = kGoldenStart + 1'000;
    it.last_ns = kGoldenStart + 9'999'999'000;
    it.bytes = 2'400'000;
    it.lag = {{0, 99'990, 5, 9, 2047, 1}, 0, 2047};
    it.usage = {1.5, 0.25, 41'943'040};
    it.blocked_ns = 5000;
    return it;
}

PublisherReport kafka_publisher_report() {
    PublisherReport it;
    it.sent = 1000;
    it.acknowledged = 990;
    it.failed = 4;
    it.first_ns = kGoldenStart;
    it.last_ns = kStop;
    it.bytes = 100'000;
    it.usage = {0.5, 0.0, 1};
    it.unacknowledged = {{100, 103}, {994, 999}};
    it.stopped_early = "the process passed its memory limit of 2 GB";
    it.unacknowledged_joined = true;
    it.system = SystemObject(nlohmann::json{{"batch_bytes", 16'384}});
    it.ack_latency = {{2048, 990, 3072, 4}, 2048, 4095};
    return it;
}

Hello hello(Ids ids, Role role, const char* group, const char* host, std::uint32_t pid) {
    Hello it{.ids = std::move(ids), .role = role, .group = group};
    it.implementation = "native";
    it.versions = {{"libzmq", "4.3.5"}};
    it.host = host;
    it.boot_id = kBoot;
    it.time_namespace = kTime;
    it.network_namespace = kNetwork;
    it.pid = pid;
    return it;
}

std::vector<Sample> host_samples() {
    HostCounters it;
    it.cores = {{12345.5, 0.25, 100000.75}, {0.5, 0.0, 100000.5}};
    it.pressure_us = {{"cpu", 1'234'567}, {"memory", INT64_MAX}, {"io", 0}};
    it.memory_total = 16'777'216'000;
    it.memory_available = 8'388'608'000;
    it.interfaces = {{"eth0", {123'456'789'012, 9'876'543'210, 0, 17, 10'000}}, {"wlan0", {0, 1, 2, 3}}};
    it.tcp = {1'000'000, 12};
    it.context_switches = 987'654'321;
    HostCounters sparse = it;
    sparse.cores.clear();
    sparse.pressure_us.clear();
    sparse.interfaces.clear();
    return {{123'456'789'000, it, {}}, {123'706'789'000, sparse, {}}};
}

std::vector<Sample> thread_samples() {
    return {{0, {}, {}, {}},
            {INT64_MAX, {}, {{4711, "ZMQbg/IO/0", 99.5, 0.25, 4713, 12.5}, {4712, "größer \"x\"", 0.25}}, {}},
            {1, {}, {}, Connections{4, 1, 2, 1048576, INT64_MAX}}};
}

std::map<std::string, Written> from_client() {
    Hello subscriber = hello({17}, Role::subscriber, "sub-0", "node-a", 4711);
    subscriber.implementation = "pyzmq";
    subscriber.versions = {{"libzmq", "4.3.5"}, {"python", "3.11.2"}, {"pyzmq", "27.1.0"}};
    subscriber.agent = "agent-sub-1";
    Hello replacement = hello({0}, Role::publisher, "pub-0", "größer", 4712);
    replacement.incarnation = 2;
    replacement.agent = "agent-pub";
    Hello relay = hello({16, 17, 18}, Role::subscriber, "sub-0", "node-a", 4700);
    relay.implementation = "pyzmq";
    relay.versions = {};
    Hello packed = hello({4294967294, 4294967295}, Role::subscriber, "sub-1", "node-b", 9);
    packed.agent = "agent-sub-2";
    packed.time_namespace = "";
    packed.network_namespace = "";
    return {
        {"hello-subscriber", {subscriber, 1}},
        {"hello-publisher-replacement", {replacement, 1}},
        {"hello-relay", {relay, 1}},
        {"hello-packed", {packed, 1}},
        {"joined", {Joined{{16, 17, 20}, {0, 3, 4294967295}, {4711, 4712, 4294967295}}, 2}},
        {"joined-one", {Joined{{17}, {4}, {1}}, 3}},
        {"ready-publisher", {Ready{{0}, 1, 1, "tcp://10.0.0.5:31000"}, 3}},
        {"ready-subscriber", {Ready{{17}, 4294967295, 4294967295, ""}, 4}},
        {"ack-configure", {Ack{{17}, 1, 1, "configure", 123'456'789, 0}, 2}},
        {"ack-ping", {Ack{{17}, 0, 0, "ping", 123'456'790, 98'765'432'100}, kLargest}},
        {"ack-start-packed", {Ack{{4294967294, 4294967295}, 1, 3, "start", INT64_MAX, 0}, 9}},
        {"ack-start-relay", {Ack{{16, 17, 18, 20}, 1, 3, "start", 123'456'791, 0}, 10}},
        {"progress", {Progress{{17}, 1, 123'456, kGoldenStart + 1}, 12}},
        {"course-publisher",
         {TimeSeries{{0}, 1, {{.second = 0, .messages = 1000}, {.second = 3, .messages = 7}}, {}}, 13}},
        {"course-subscriber",
         {TimeSeries{{17, 18, 19},
                     1,
                     {{.second = 3599, .messages = 5, .latency = {{-3, 1, 40, 2, 2000, 2}, -2, 1952}}},
                     {{.second = 0, .messages = 1, .latency = {{7, 1}, 7, 7}}}},
          14}},
        {"report-publisher-zmq", {Report{{0}, 1, 4, zmq_publisher_report()}, 20}},
        {"report-publisher-kafka", {Report{{0}, 2, 4, kafka_publisher_report()}, 21}},
        {"batch",
         {BatchHead{{16, 17, 20}, 1, {}, {{"batches", 3}, {"bits", 0}, {"latency_counts", 46}}}, 12}},
        {"batch-of-clients", {BatchHead{{18, 19}, 1, 5, {{"batches", 2}, {"latency_counts", 8}}}, 8}},
        {"error", {Error{{0}, 1, 1, "cannot bind \"tcp://10.0.0.5:31000\": in use\n", false}, 6}},
        {"error-fatal", {Error{{0}, 0, 0, "out of memory", true}, 7}},
        {"error-relay", {Error{{16, 17, 18}, 1, 1, "an unknown field: rcvhmw", false}, 13}},
        {"host", {HostReadings{{16, 17, 18}, 3, host_samples()}, 9}},
        {"host-threads", {HostReadings{{0}, 3, thread_samples()}, 10}},
        {"host-end", {HostReadings{{16, 17, 18}, 3, {}}, 11}},
        {"texts",
         {KernelTexts{{16, 17, 18}, 7, 123456789, {{"/proc/sys/kernel/osrelease", "6.1.0\n"}}, true}, 12}},
        {"texts-cut", {KernelTexts{{0}, 8, 123456790, {{"/sys/class/net/eth0/speed", ""}}, false}, 13}},
        {"child-exit-killed", {ChildExit{{17}, 0, 4711, -9, true}, 2}},
        {"child-exit-dismissed", {ChildExit{{18}, 0, 4713, 0, false}, 4}},
        {"child-exit-code", {ChildExit{{16, 17, 18, 20}, 3, 4712, 1, false}, 3}},
    };
}

const std::set<std::string> kFromController = {"welcome",
                                               "welcome-connection",
                                               "configure-publisher",
                                               "configure-subscribers",
                                               "configure-kafka",
                                               "configure-connect",
                                               "start",
                                               "start-elsewhere",
                                               "stop",
                                               "finish-zmq",
                                               "finish-kafka",
                                               "ping",
                                               "ping-reply",
                                               "watch",
                                               "watch-end",
                                               "look",
                                               "quit",
                                               "quit-clients",
                                               "evict",
                                               "evict-incarnation"};

// The frame, decoded and encoded again by the description of its type, whichever side sends it; "" if no
// message of the set has that type.
template <typename... Messages>
std::string again(std::type_identity<std::variant<Messages...>>, const std::string& frame) {
    const auto value = nlohmann::json::parse(frame);
    std::string written;
    const auto try_as = [&]<typename Message>(Message it) {
        if (value["type"] != Message::kType) {
            return;
        }
        std::string type;
        std::uint64_t seq = 0;
        JsonReader reader(value);
        reader.required("type", type);
        reader.required("ids", it.ids);
        const bool from_client = reader.optional("seq", seq);
        Message::describe(it, reader);
        reader.nothing_else();
        JsonWriter::json object = {{"type", type}};
        JsonWriter writer(object);
        writer.required("ids", it.ids);
        if (from_client) {
            object["seq"] = seq;
        }
        Message::describe(it, writer);
        written = object.dump();
    };
    (try_as(Messages()), ...);
    return written;
}

template <typename T>
T read(const std::string& name) {
    return std::get<T>(decode(content(golden("control/" + name + ".json"))));
}

}  // namespace

TEST_CASE("what a client writes is what the golden files hold") {
    for (const auto& [name, written] : from_client()) {
        CAPTURE(name);
        CHECK(encode(written.message, written.seq) == content(golden("control/" + name + ".json")));
    }
}

TEST_CASE("one description reads and writes a message, whichever side sends it") {
    for (const auto& file : std::filesystem::directory_iterator(golden("control"))) {
        CAPTURE(file.path());
        const std::string frame = content(file.path());
        CHECK(again(std::type_identity<FromClient>(), frame) +
                  again(std::type_identity<FromController>(), frame) ==
              frame);
    }
}

TEST_CASE("a relay reads what clients write") {
    for (const auto& [name, written] : from_client()) {
        CAPTURE(name);
        const std::string frame = content(golden("control/" + name + ".json"));
        CHECK(encode(decode_from_client(frame), written.seq) == frame);
    }
    CHECK_THROWS_AS(decode_from_client(content(golden("control/start.json"))), ProtocolError);
}

TEST_CASE("a command is passed on as it came but for its ids") {
    for (const std::string& name : kFromController) {
        CAPTURE(name);
        const std::string frame = content(golden("control/" + name + ".json"));
        const std::string passed = with_ids(without_ids(frame), {3, 4, 9});
        auto expected = nlohmann::json::parse(frame);
        expected["ids"] = nlohmann::json::parse("[[3,4],9]");
        CHECK(nlohmann::json::parse(passed) == expected);
        CHECK(without_ids(passed) == without_ids(frame));
        CHECK_NOTHROW(decode(passed));
    }
}

TEST_CASE("there is a test for every control message") {
    std::set<std::string> known = kFromController;
    for (const auto& [name, written] : from_client()) {
        known.insert(name);
    }
    std::set<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(golden("control"))) {
        files.insert(file.path().stem());
    }
    CHECK(files == known);
}

TEST_CASE("a client does not accept messages of clients") {
    for (const auto& [name, written] : from_client()) {
        CAPTURE(name);
        CHECK_THROWS_AS(decode(content(golden("control/" + name + ".json"))), ProtocolError);
    }
}

TEST_CASE("configure") {
    const auto publisher = read<Configure>("configure-publisher");
    CHECK(publisher.epoch == 1);
    CHECK(publisher.settings.rate == 10'000.0);
    CHECK(publisher.settings.burst == 200);
    CHECK(publisher.settings.payload == Payload::json);
    CHECK(publisher.settings.message_size_min == 2000);
    CHECK(publisher.settings.payload_seed == INT64_MAX);
    CHECK(publisher.payload_share == 2704);
    CHECK(publisher.probe);
    CHECK(publisher.progress_s == 1.5);
    CHECK(publisher.publishers.empty());
    CHECK(publisher.group.empty());
    CHECK_FALSE(publisher.cohort);
    CHECK(publisher.load == std::vector<LoadPoint>{{0, 100.5}, {10, 100.5}, {10, 0}, {3600, 50'000}});
    CHECK(publisher.course_s == 1);
    CHECK(publisher.spells.empty());
    CHECK_FALSE(publisher.system);

    const auto subscribers = read<Configure>("configure-subscribers");
    CHECK(subscribers.ids == Ids{4294967294});
    CHECK_FALSE(subscribers.settings.rate);
    CHECK(subscribers.cohort);
    CHECK(subscribers.load.empty());
    CHECK(subscribers.course_s == 0);
    CHECK(subscribers.spells == std::vector<Impairment>{{ImpairmentKind::slow, 10, 20.5, 2500.5},
                                                        {ImpairmentKind::absent, 30, 31, 0}});
    CHECK(subscribers.settings.receive_rate == 2500.5);
    CHECK(subscribers.settings.reconnect_rate == 2.0);
    CHECK(subscribers.publishers ==
          std::vector<PublisherEndpoint>{{0, "tcp://10.0.0.5:31000"}, {1, "tcp://10.0.0.5:31001"}});
    REQUIRE(subscribers.system);
    CHECK(subscribers.system.json() == nlohmann::json{{"nodrop", true}, {"rcvhwm", 0}, {"sndhwm", 1000}});

    const auto kafka = read<Configure>("configure-kafka");
    CHECK(kafka.group == "readers");
    CHECK(kafka.settings.payload_file == "/data/é.txt");
    REQUIRE(kafka.system);
    CHECK(kafka.system.json()["topic"] == "hydra-run-data");
    CHECK(kafka.system.json()["properties"]["sasl.password"] == "é\"\\ \t");
}

TEST_CASE("when subscribers connect") {
    const auto command = read<Configure>("configure-connect");
    REQUIRE(command.connect);
    const Connect& connect = *command.connect;
    CHECK(connect.clock.at_ns == 100'000'000'000);
    CHECK(connect.at_ns == kGoldenStart);
    CHECK(connect.first == 1);
    CHECK(connect.rate == 500.5);
    CHECK(connect.within_s == 12.5);
    CHECK(connect.probe_s == 0.25);
    CHECK(connect.due_ns(3) == kGoldenStart + 3'996'003);
    CHECK_FALSE(read<Configure>("configure-kafka").connect);
}

TEST_CASE("the other commands") {
    CHECK(read<Welcome>("welcome").silence_s == 30);
    CHECK(read<Welcome>("welcome").run == "20260101-zmqrate");
    const auto start = read<Start>("start");
    CHECK(start.start_at_ns == kGoldenStart);
    CHECK(start.stop_at_ns == kStop);
    CHECK(start.clock.at_ns == 100'000'000'000);
    CHECK(start.clock.step_ns == kGoldenStart - 300'000'000);
    CHECK(start.clock.rate_ppb == 0);
    const HostClock elsewhere = read<Start>("start-elsewhere").clock;
    CHECK(elsewhere.at_ns == INT64_MAX);
    CHECK(elsewhere.step_ns == INT64_MAX);
    CHECK(elsewhere.rate_ppb == -kMaxRatePpb);
    CHECK(read<Stop>("stop").stop_at_ns == kStop);
    const auto finish = read<Finish>("finish-kafka");
    CHECK(finish.publishers.at(0).sent == 1000);
    CHECK(finish.publishers.at(0).unacknowledged == std::vector<Range>{{100, 103}, {994, 999}});
    CHECK(finish.system.json()["end_offsets"]["1"] == 12'345'679'301);
    CHECK(finish.drain_max_s == 15);
    CHECK(finish.quiet_s == 0.25);
    CHECK(read<Finish>("finish-zmq").quiet_s == 0.5);
    CHECK_FALSE(read<Ping>("ping").reply);
    CHECK(read<Ping>("ping-reply").reply);
    CHECK(read<Ping>("ping-reply").time_ns == 98'765'432'100);
    CHECK(read<Watch>("watch").epoch == 3);
    CHECK(read<Watch>("watch").every_s == 0.25);
    CHECK(read<Watch>("watch").host);
    CHECK(read<Watch>("watch-end").every_s == 0);
    CHECK_FALSE(read<Watch>("watch-end").host);
    CHECK(read<Look>("look").number == 7);
    CHECK(read<Look>("look").patterns.back() == "/proc/[0-9]*/stat");
    CHECK(read<Look>("look").most_bytes == 384);
    CHECK(read<Quit>("quit").ids.empty());
    CHECK(read<Quit>("quit-clients").ids == Ids{17, 18});
    CHECK(read<Evict>("evict").ids == Ids{17, 18});
    CHECK_FALSE(read<Evict>("evict").incarnation);
    CHECK(read<Evict>("evict-incarnation").ids == Ids{3, 17, 18, 19});
    CHECK(read<Evict>("evict-incarnation").incarnation == 2);
    CHECK(read<Welcome>("welcome-connection").ids.empty());
}

TEST_CASE("frames that a client rejects") {
    int files = 0;
    for (const auto& file : std::filesystem::directory_iterator(golden("refused/client"))) {
        CAPTURE(file.path());
        CHECK_THROWS_AS(decode(content(file.path())), ProtocolError);
        ++files;
    }
    CHECK(files > 20);
}

TEST_CASE("headers of data messages") {
    const auto entries = nlohmann::json::parse(content(golden("header/headers.json")));
    CHECK(entries.size() == 6);
    for (const auto& entry : entries) {
        CAPTURE(entry);
        const std::string data = content(golden("header/" + entry["file"].get<std::string>()));
        const Header header{entry["epoch"], entry["publisher"], entry["sequence"], entry["time_ns"]};
        CHECK(data.size() == entry["message_size"].get<std::size_t>());
        CHECK(read_header(data.data()) == header);
        std::string written(data.size(), '\0');
        write_header(written.data(), header);
        CHECK(written == data);
    }
}
