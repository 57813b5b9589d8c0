// The commands from the controller to clients; no ids means every client of the connection.
#pragma once

#include <array>
#include <cfloat>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/header.h"
#include "common/messages/parts.h"

namespace hydra {

struct Welcome {
    Ids ids;
    int version = kVersion;
    std::string run;
    double silence_s = 0;

    static constexpr const char* kType = "welcome";
    static void describe(auto& it, auto& fields) {
        fields.required("v", it.version, Whole{kVersion, kVersion});
        fields.required("run", it.run);
        fields.required("silence_s", it.silence_s, kSeconds);
    }
};

enum class Payload { zeros, random, json, lines };

constexpr std::array<const char*, 4> words(Payload) {
    return {"zeros", "random", "json", "lines"};
}

// The settings that all systems have.
struct Settings {
    std::optional<double> rate;  // none: "max"
    std::uint64_t burst = 1;
    std::optional<std::uint64_t> messages;  // most messages; none: as many as the window allows
    std::uint64_t message_size = kHeaderBytes;
    std::optional<std::uint64_t> message_size_min;  // none: all have one size
    Payload payload = Payload::zeros;
    double payload_ratio = 4;  // the ratio from which payload_share was computed
    std::string payload_file;
    std::uint64_t payload_seed = 1;
    std::optional<double> receive_rate;
    std::optional<double> reconnect_rate;

    static constexpr bool kOthersAllowed = true;  // a newer controller may send more
    static void describe(auto& it, auto& fields) {
        fields.optional("rate", it.rate, OrMax{kAboveZero});
        fields.required("burst", it.burst, Whole{1});
        fields.optional("messages", it.messages, Whole{1});
        fields.optional("message_size", it.message_size, Whole{kHeaderBytes, kMaxDataMessageBytes});
        fields.optional("message_size_min", it.message_size_min, Whole{kHeaderBytes, kMaxDataMessageBytes});
        fields.optional("payload", it.payload);
        fields.optional("payload_ratio", it.payload_ratio, Number{1, 1000});
        fields.optional("payload_file", it.payload_file);
        fields.optional("payload_seed", it.payload_seed);
        fields.optional("receive_rate", it.receive_rate, kAboveZero);
        fields.optional("reconnect_rate", it.reconnect_rate, Number{DBL_TRUE_MIN, 100});
    }
};

struct PublisherEndpoint {
    Id publisher = 0;
    std::string endpoint;
    bool operator==(const PublisherEndpoint&) const = default;

    static void describe(auto& it, auto& fields) {
        fields.required("publisher", it.publisher);
        fields.optional("endpoint", it.endpoint);
    }
};

// A point of a load: seconds since the start, and the rate in messages/s.
struct LoadPoint {
    double at_s = 0;
    double rate = 0;
    bool operator==(const LoadPoint&) const = default;

    static constexpr std::size_t kItems = 2;
    static void items(auto& it, const auto& each) {
        each(it.at_s, kSeconds);
        each(it.rate, Number{0, 1e9});
    }
};

enum class ImpairmentKind { slow, absent };

constexpr std::array<const char*, 2> words(ImpairmentKind) {
    return {"slow", "gone"};
}

// A part of the window in which a subscriber reads at most `rate` messages/s, or has no connection.
struct Impairment {
    ImpairmentKind kind = ImpairmentKind::slow;
    double begin_s = 0;
    double end_s = 0;
    double rate = 0;
    bool operator==(const Impairment&) const = default;

    static void describe(auto& it, auto& fields) {
        fields.required("kind", it.kind);
        fields.required("begin_s", it.begin_s, kSeconds);
        fields.required("end_s", it.end_s, kSeconds);
        fields.optional("rate", it.rate, Number{0, DBL_MAX});
    }
};

// A slot of an alias table: it is itself if the low half of a draw is below `threshold`, else `alias`.
struct AliasSlot {
    std::uint32_t threshold = 0;
    std::uint32_t alias = 0;
    bool operator==(const AliasSlot&) const = default;

    static constexpr std::size_t kItems = 2;
    static void items(auto& it, const auto& each) {
        each(it.threshold);
        each(it.alias);
    }
};

// Sizes of messages in bytes, with the header; both ends included.
struct SizeRange {
    std::uint64_t least = kHeaderBytes;
    std::uint64_t most = kHeaderBytes;
    bool operator==(const SizeRange&) const = default;

    static constexpr std::size_t kItems = 2;
    static void items(auto& it, const auto& each) {
        each(it.least, Whole{kHeaderBytes, kMaxDataMessageBytes});
        each(it.most, Whole{kHeaderBytes, kMaxDataMessageBytes});
    }
};

// Which messages go to which topic, their keys and their sizes; traffic.h computes them. A choice without a
// table is even.
struct Traffic {
    std::uint64_t seed = 1;
    std::uint32_t topics = 1;
    std::vector<AliasSlot> topic_table;
    std::uint32_t topics_per_client = 0;  // 0: all
    bool wildcard = false;                // a subscriber takes all topics by one pattern
    std::uint32_t keys = 0;
    std::vector<AliasSlot> key_table;
    std::vector<SizeRange> sizes;  // none: all messages have the sizes of the settings
    std::vector<AliasSlot> size_table;
    bool operator==(const Traffic&) const = default;

    static void describe(auto& it, auto& fields) {
        fields.required("seed", it.seed);
        fields.required("topics", it.topics, Whole{1, kMaxTopics});
        fields.required("topic_table", it.topic_table);
        fields.required("topics_per_client", it.topics_per_client, Whole{0, kMaxTopics});
        fields.required("wildcard", it.wildcard);
        fields.required("keys", it.keys, Whole{0, kMaxKeys});
        fields.required("key_table", it.key_table);
        fields.required("sizes", it.sizes);
        fields.required("size_table", it.size_table);
    }
};

// The commands of a step, in their order. Each has its step's word; relays forward them and await an answer.
enum class Step { configure, start, stop, finish };

constexpr std::array<const char*, 4> words(Step) {
    return {"configure", "start", "stop", "finish"};
}

// The step's clock on the receiver's host: a straight line over CLOCK_MONOTONIC, through one point.
struct HostClock {
    std::int64_t at_ns = 0;     // a reading of CLOCK_MONOTONIC
    std::int64_t step_ns = 0;   // the step's clock at this reading
    std::int64_t rate_ppb = 0;  // how much faster the step's clock runs, in 1e-9

    static void describe(auto& it, auto& fields) {
        fields.required("at_ns", it.at_ns);
        fields.required("step_ns", it.step_ns);
        fields.optional("rate_ppb", it.rate_ppb, Whole{-kMaxRatePpb, kMaxRatePpb});
    }
};

// When each subscriber opens a new connection: `first` at `at_ns` on the step's clock, the next ones `rate` a
// second.
struct Connect {
    HostClock clock;
    std::int64_t at_ns = 0;  // 0: all keep their connections
    Id first = 0;
    std::optional<double> rate;  // none: all at once
    double within_s = 10;        // after this time a subscriber that is not ready stops trying
    double probe_s = 0.5;        // between two probes of a publisher

    static void describe(auto& it, auto& fields) {
        fields.required("clock", it.clock);
        fields.optional("at_ns", it.at_ns);
        fields.optional("first", it.first);
        fields.optional("rate", it.rate, Number{DBL_TRUE_MIN, 1e9});
        fields.optional("within_s", it.within_s, kSeconds);
        fields.optional("probe_s", it.probe_s, kSeconds);
    }

    // When a subscriber is due to connect, on the step's clock.
    [[nodiscard]] std::int64_t due_ns(Id client) const {
        return at_ns +
               (rate ? static_cast<std::int64_t>(static_cast<double>(client - first) * 1e9 / *rate) : 0);
    }
};

struct Configure {
    Ids ids;
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;  // of this command in its epoch
    Settings settings;
    std::vector<PublisherEndpoint> publishers;
    bool probe = false;
    double progress_s = 0;
    std::string group;                // consumer group of the subscribers; "": none
    std::uint64_t payload_share = 0;  // how many of 10,000 characters of a JSON payload are random
    bool cohort = false;              // in the step's cohort, whose latencies are summed separately
    std::vector<LoadPoint> load;      // none: settings.rate all the time
    double course_s = 0;              // interval of `course`; 0: never
    std::vector<Impairment> spells;
    SystemObject system;
    std::optional<Traffic> traffic;  // none: one topic, no keys, and the sizes of the settings
    std::optional<Connect> connect;  // none unless the step measures connecting

    static constexpr const char* kType = "configure";
    static constexpr Step kStep = Step::configure;
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("number", it.number, Whole{1, UINT32_MAX});
        fields.required("settings", it.settings);
        fields.required("publishers", it.publishers);
        fields.required("probe", it.probe);
        fields.optional("progress_s", it.progress_s, kSeconds);
        fields.optional("group", it.group);
        fields.optional("payload_share", it.payload_share, Whole{0, 10'000});
        fields.optional("cohort", it.cohort);
        fields.optional("load", it.load);
        fields.optional("course_s", it.course_s, kSeconds);
        fields.optional("spells", it.spells);
        fields.optional("system", it.system);
        fields.present("traffic", it.traffic);
        fields.present("connect", it.connect);
    }
};

struct Start {
    Ids ids;
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;  // of this command in its epoch
    std::int64_t start_at_ns = 0;
    std::int64_t stop_at_ns = 0;
    HostClock clock;
    SystemObject system;

    static constexpr const char* kType = "start";
    static constexpr Step kStep = Step::start;
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("number", it.number, Whole{1, UINT32_MAX});
        fields.required("start_at_ns", it.start_at_ns);
        fields.required("stop_at_ns", it.stop_at_ns);
        fields.required("clock", it.clock);
        fields.optional("system", it.system);
    }
};

struct Stop {
    Ids ids;
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;  // of this command in its epoch
    std::int64_t stop_at_ns = 0;

    static constexpr const char* kType = "stop";
    static constexpr Step kStep = Step::stop;
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("number", it.number, Whole{1, UINT32_MAX});
        fields.required("stop_at_ns", it.stop_at_ns);
    }
};

struct PublisherTotal {
    Id publisher = 0;
    std::uint64_t sent = 0;
    std::vector<Range> unacknowledged;

    static void describe(auto& it, auto& fields) {
        fields.required("publisher", it.publisher);
        fields.required("sent", it.sent);
        fields.optional("unacknowledged", it.unacknowledged);
    }
};

struct Finish {
    Ids ids;
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;  // of this command in its epoch
    std::vector<PublisherTotal> publishers;
    double drain_max_s = 0;
    double quiet_s = 0.5;
    SystemObject system;

    static constexpr const char* kType = "finish";
    static constexpr Step kStep = Step::finish;
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("number", it.number, Whole{1, UINT32_MAX});
        fields.required("publishers", it.publishers);
        fields.required("drain_max_s", it.drain_max_s, kSeconds);
        fields.optional("quiet_s", it.quiet_s, kSeconds);
        fields.optional("system", it.system);
    }
};

struct Ping {
    Ids ids;
    std::int64_t time_ns = 0;
    bool reply = false;

    static constexpr const char* kType = "ping";
    static void describe(auto& it, auto& fields) {
        fields.required("time_ns", it.time_ns);
        fields.optional("reply", it.reply);
    }
};

// To a relay.
struct Watch {
    Ids ids;
    std::uint32_t epoch = 0;
    double every_s = 0;  // 0: end the watch
    bool host = false;   // sample the host as well, not only the group's threads

    static constexpr const char* kType = "watch";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("every_s", it.every_s, kSeconds);
        fields.required("host", it.host);
    }
};

// To a relay: send the beginnings of these files of the kernel.
struct Look {
    Ids ids;
    std::uint32_t number = 0;           // repeated in the answer
    std::vector<std::string> patterns;  // paths with the wildcards of a shell
    std::uint32_t most_bytes = 0;       // of each file

    static constexpr const char* kType = "look";
    static void describe(auto& it, auto& fields) {
        fields.required("number", it.number);
        fields.required("patterns", it.patterns);
        fields.required("most_bytes", it.most_bytes, Whole{1, kMaxFileBytes});
    }
};

struct Quit {
    Ids ids;

    static constexpr const char* kType = "quit";
    static void describe(auto&, auto&) {}
};

// To a relay: kill these clients.
struct Evict {
    Ids ids;
    std::optional<std::uint32_t> incarnation;  // clients with a higher incarnation stay

    static constexpr const char* kType = "evict";
    static void describe(auto& it, auto& fields) { fields.optional("incarnation", it.incarnation); }
};

using FromController = std::variant<Welcome, Configure, Start, Stop, Finish, Ping, Watch, Look, Evict, Quit>;

}  // namespace hydra
