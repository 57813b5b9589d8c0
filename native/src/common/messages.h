// The messages of the control channel, as docs/control-protocol.md has them: their fields, and the one
// description of these from which both the encoder (writer.h) and the decoder (reader.h) follow.
//
// `describe(it, fields)` names every field in the order in which it is written: `required`, or `optional`,
// which keeps the member's default where the field is missing. The member's type says how it is written; a
// std::optional may be null. Whole numbers lie between 0 and the most that their type and 63 bits hold unless
// a limit is given; numbers with a fraction always have one. `type`, `v`, `ids` and `seq`, which all messages
// have alike, are the business of encode.cc and decode.cc.
#pragma once

#include <array>
#include <cfloat>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/header.h"

namespace hydra {

using Id = std::uint32_t;
using Ids = std::vector<Id>;

inline constexpr std::size_t kMaxMessageBytes = 512 * 1024;
inline constexpr std::size_t kMaxTextCharacters = 4096;
inline constexpr std::size_t kMaxMissingRanges = 256;
inline constexpr std::size_t kMaxUnacknowledgedRanges = 4096;
inline constexpr std::size_t kMaxAbsent = 1024;
inline constexpr std::size_t kLagBins = 20;
inline constexpr std::int64_t kMaxDataMessageBytes = 64 * 1024 * 1024;
inline constexpr std::uint32_t kProbeEpoch = 0;

// --- limits -------------------------------------------------------------------------------------------

struct Whole {
    std::int64_t least = 0;
    std::int64_t most = INT64_MAX;
};

struct Number {
    double least;
    double most;
};

using OneOf = std::initializer_list<std::string_view>;

// A number, or the word "max" for none.
struct OrMax {
    Number limit;
};

inline constexpr Whole kSigned{INT64_MIN, INT64_MAX};
inline constexpr Number kSeconds{0, 1e9};
inline constexpr Number kAboveZero{DBL_TRUE_MIN, DBL_MAX};

// --- parts of messages --------------------------------------------------------------------------------

enum class Role { publisher, subscriber };

// The words of an enumeration, in its order.
constexpr std::array<const char*, 2> words(Role) {
    return {"publisher", "subscriber"};
}

// First and last sequence, both included; written as an array of the two. Lists of them rise.
struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    bool operator==(const Range&) const = default;
};

// --- reports ------------------------------------------------------------------------------------------

// Sparse HDR counts: index, count, index, count, …; see histogram.h for the index of a value.
struct HistogramCounts {
    std::vector<std::uint64_t> counts;
    std::uint64_t min_us = 0;
    std::uint64_t max_us = 0;

    static void describe(auto& it, auto& fields) {
        fields.required("counts", it.counts);
        fields.required("min_us", it.min_us);
        fields.required("max_us", it.max_us);
    }
};

struct Usage {
    double cpu_user_s = 0;
    double cpu_system_s = 0;
    std::uint64_t max_rss_bytes = 0;

    static void describe(auto& it, auto& fields) {
        fields.optional("cpu_user_s", it.cpu_user_s, kSeconds);
        fields.optional("cpu_system_s", it.cpu_system_s, kSeconds);
        fields.optional("max_rss_bytes", it.max_rss_bytes);
    }
};

struct LedgerCounts {
    Id publisher = 0;
    std::uint64_t received = 0;
    std::uint64_t in_window = 0;
    std::uint64_t missing = 0;
    std::vector<Range> missing_ranges;
    bool truncated = false;
    std::uint64_t duplicates = 0;
    std::uint64_t reordered = 0;
    std::uint64_t extra = 0;
    bool operator==(const LedgerCounts&) const = default;

    static void describe(auto& it, auto& fields) {
        fields.required("publisher", it.publisher);
        fields.required("received", it.received);
        fields.required("in_window", it.in_window);
        fields.required("missing", it.missing);
        fields.optional("missing_ranges", it.missing_ranges);
        fields.optional("truncated", it.truncated);
        fields.optional("duplicates", it.duplicates);
        fields.optional("reordered", it.reordered);
        fields.optional("extra", it.extra);
    }
};

struct PublisherReport {
    std::uint64_t sent = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t failed = 0;
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
    std::uint64_t bytes = 0;
    HistogramCounts lag;
    Usage usage;
    std::vector<Range> unacknowledged;
    std::int64_t blocked_ns = 0;
    std::uint64_t batch_bytes = 0;
    std::string stopped_early;
    bool unacknowledged_joined = false;

    static void describe(auto& it, auto& fields) {
        fields.required("sent", it.sent);
        fields.required("acknowledged", it.acknowledged);
        fields.required("failed", it.failed);
        fields.required("first_ns", it.first_ns);
        fields.required("last_ns", it.last_ns);
        fields.required("bytes", it.bytes);
        fields.required("lag", it.lag);
        fields.required("usage", it.usage);
        fields.optional("unacknowledged", it.unacknowledged);
        fields.optional("blocked_ns", it.blocked_ns);
        fields.optional("batch_bytes", it.batch_bytes);
        fields.optional("stopped_early", it.stopped_early);
        fields.optional("unacknowledged_joined", it.unacknowledged_joined);
    }
};

enum class DrainEnd { complete, marked, quiet, deadline };

constexpr std::array<const char*, 4> words(DrainEnd) {
    return {"complete", "marked", "quiet", "deadline"};
}

// Written as an array of the two.
struct Interval {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
};

struct SubscriberReport {
    std::vector<LedgerCounts> ledgers;
    std::uint64_t batches = 0;
    std::uint64_t first_batch = 0;
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
    std::uint64_t bytes = 0;
    std::uint64_t stale = 0;
    HistogramCounts latency;
    Usage usage;
    std::uint64_t undrained = 0;
    std::vector<Interval> absent;
    std::uint64_t reconnects = 0;
    bool felt = true;
    DrainEnd drain = DrainEnd::complete;
    std::vector<std::optional<std::uint64_t>> lag_bins_us;

    static void describe(auto& it, auto& fields) {
        fields.required("ledgers", it.ledgers);
        fields.required("batches", it.batches);
        fields.required("first_batch", it.first_batch);
        fields.required("first_ns", it.first_ns);
        fields.required("last_ns", it.last_ns);
        fields.required("bytes", it.bytes);
        fields.required("stale", it.stale);
        fields.required("latency", it.latency);
        fields.required("usage", it.usage);
        fields.optional("undrained", it.undrained);
        fields.optional("absent", it.absent);
        fields.optional("reconnects", it.reconnects);
        fields.optional("felt", it.felt);
        fields.optional("drain", it.drain);
        fields.optional("lag_bins_us", it.lag_bins_us);
    }
};

// --- client → controller ------------------------------------------------------------------------------

struct Hello {
    Ids ids;
    Role role = Role::publisher;
    std::string group;
    bool warden = false;
    std::uint32_t incarnation = 0;
    std::string implementation;
    std::map<std::string, std::string> versions;
    std::string agent;
    std::string host;
    std::string boot_id;
    std::uint32_t pid = 0;

    static constexpr const char* kType = "hello";
    static void describe(auto& it, auto& fields) {
        fields.required("role", it.role);
        fields.required("group", it.group);
        fields.required("warden", it.warden);
        fields.required("incarnation", it.incarnation);
        fields.required("implementation", it.implementation);
        fields.required("versions", it.versions);
        fields.required("agent", it.agent);
        fields.required("host", it.host);
        fields.required("boot_id", it.boot_id);
        fields.required("pid", it.pid);
    }
};

struct Ready {
    Ids ids;
    std::uint32_t epoch = 0;
    std::string endpoint;

    static constexpr const char* kType = "ready";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.optional("endpoint", it.endpoint);
    }
};

struct Ack {
    Ids ids;
    std::uint32_t epoch = 0;
    std::string command;
    std::int64_t time_ns = 0;
    std::int64_t echo = 0;

    static constexpr const char* kType = "ack";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("command", it.command);
        fields.optional("time_ns", it.time_ns);
        fields.optional("echo", it.echo);
    }
};

struct Progress {
    Ids ids;
    std::uint32_t epoch = 0;
    std::uint64_t messages = 0;
    std::int64_t time_ns = 0;

    static constexpr const char* kType = "progress";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("messages", it.messages);
        fields.required("time_ns", it.time_ns);
    }
};

struct Report {
    Ids ids;
    std::uint32_t epoch = 0;
    std::variant<PublisherReport, SubscriberReport> body;

    static constexpr const char* kType = "report";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.either({"publisher", "subscriber"}, it.body);
    }
};

struct Error {
    Ids ids;
    std::uint32_t epoch = 0;
    std::string message;
    bool fatal = false;

    static constexpr const char* kType = "error";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("message", it.message);
        fields.optional("fatal", it.fatal);
    }
};

struct ChildExit {
    Ids ids;
    std::uint32_t pid = 0;
    int status = 0;
    bool replaced = false;

    static constexpr const char* kType = "child_exit";
    static void describe(auto& it, auto& fields) {
        fields.required("pid", it.pid);
        fields.required("status", it.status, Whole{-255, 255});
        fields.required("replaced", it.replaced);
    }
};

using FromClient = std::variant<Hello, Ready, Ack, Progress, Report, Error, ChildExit>;

// --- controller → client; no ids means every client of the connection -----------------------------------

struct Welcome {
    Ids ids;
    std::string run;
    double silence_s = 0;

    static constexpr const char* kType = "welcome";
    static void describe(auto& it, auto& fields) {
        fields.required("run", it.run);
        fields.required("silence_s", it.silence_s, kSeconds);
    }
};

struct Settings {
    std::optional<double> rate;  // none: "max"
    std::uint64_t msg_batch = 100;
    std::uint64_t message_size = 24;
    int sndhwm = 1000;
    int rcvhwm = 1000;
    bool nodrop = false;
    double linger_ms = 0;
    std::optional<std::uint64_t> batch_bytes;
    std::string compression = "none";
    std::string acks = "1";
    std::optional<double> receive_rate;
    std::optional<double> reconnect_rate;

    static constexpr bool kOthersAllowed = true;  // further settings may be another system's
    static void describe(auto& it, auto& fields) {
        fields.optional("rate", it.rate, OrMax{kAboveZero});
        fields.optional("msg_batch", it.msg_batch, Whole{1});
        fields.optional("message_size", it.message_size, Whole{kHeaderBytes, kMaxDataMessageBytes});
        fields.optional("sndhwm", it.sndhwm);
        fields.optional("rcvhwm", it.rcvhwm);
        fields.optional("nodrop", it.nodrop);
        fields.optional("linger_ms", it.linger_ms, Number{0, 900'000});
        fields.optional("batch_bytes", it.batch_bytes, Whole{1, INT32_MAX});
        fields.optional("compression", it.compression, OneOf{"none", "gzip", "snappy", "lz4", "zstd"});
        fields.optional("acks", it.acks, OneOf{"0", "1", "all"});
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

using Offsets = std::map<std::int32_t, std::int64_t>;  // by partition

struct KafkaTopic {
    std::string bootstrap;
    std::string topic;
    Offsets offsets;
    std::map<std::string, std::string> properties;

    static void describe(auto& it, auto& fields) {
        fields.required("bootstrap", it.bootstrap);
        fields.required("topic", it.topic);
        fields.required("offsets", it.offsets);
        fields.optional("properties", it.properties);
    }
};

struct Configure {
    Ids ids;
    std::uint32_t epoch = 0;
    Settings settings;
    std::vector<PublisherEndpoint> publishers;
    bool probe = false;
    double progress_s = 0;
    std::optional<KafkaTopic> kafka;

    static constexpr const char* kType = "configure";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("settings", it.settings);
        fields.required("publishers", it.publishers);
        fields.required("probe", it.probe);
        fields.optional("progress_s", it.progress_s, kSeconds);
        fields.optional("kafka", it.kafka);
    }
};

struct Start {
    Ids ids;
    std::uint32_t epoch = 0;
    std::int64_t start_at_ns = 0;
    std::int64_t stop_at_ns = 0;
    std::int64_t wall_offset_ns = 0;
    std::string boot_id;

    static constexpr const char* kType = "start";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("start_at_ns", it.start_at_ns);
        fields.required("stop_at_ns", it.stop_at_ns);
        fields.required("wall_offset_ns", it.wall_offset_ns, kSigned);
        fields.required("boot_id", it.boot_id);
    }
};

struct Stop {
    Ids ids;
    std::uint32_t epoch = 0;
    std::int64_t stop_at_ns = 0;

    static constexpr const char* kType = "stop";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("stop_at_ns", it.stop_at_ns);
    }
};

struct Sent {
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
    std::vector<Sent> publishers;
    Offsets end_offsets;
    double drain_max_s = 0;
    double quiet_s = 0.5;

    static constexpr const char* kType = "finish";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("publishers", it.publishers);
        fields.optional("end_offsets", it.end_offsets);
        fields.required("drain_max_s", it.drain_max_s, kSeconds);
        fields.optional("quiet_s", it.quiet_s, kSeconds);
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

struct Quit {
    Ids ids;

    static constexpr const char* kType = "quit";
    static void describe(auto&, auto&) {}
};

using FromController = std::variant<Welcome, Configure, Start, Stop, Finish, Ping, Quit>;

}  // namespace hydra
