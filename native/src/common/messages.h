// The nouns of the control channel, as docs/control-protocol.md has them. Nothing here does anything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hydra {

using Id = std::uint32_t;
using Ids = std::vector<Id>;

inline constexpr std::size_t kMaxMessageBytes = 512 * 1024;
inline constexpr std::size_t kMaxTextCharacters = 4096;
inline constexpr std::size_t kMaxMissingRanges = 256;
inline constexpr std::size_t kMaxUnacknowledgedRanges = 4096;
inline constexpr std::size_t kMaxAbsent = 1024;
inline constexpr std::size_t kLagBins = 20;
inline constexpr std::uint32_t kProbeEpoch = 0;

enum class Role { publisher, subscriber };

// First and last sequence, both included.
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
};

struct Usage {
    double cpu_user_s = 0;
    double cpu_system_s = 0;
    std::uint64_t max_rss_bytes = 0;
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
};

enum class DrainEnd { complete, marked, quiet, deadline };

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
};

struct Ready {
    Ids ids;
    std::uint32_t epoch = 0;
    std::string endpoint;
};

struct Ack {
    Ids ids;
    std::uint32_t epoch = 0;
    std::string command;
    std::int64_t time_ns = 0;
    std::int64_t echo = 0;
};

struct Progress {
    Ids ids;
    std::uint32_t epoch = 0;
    std::uint64_t messages = 0;
    std::int64_t time_ns = 0;
};

struct Report {
    Ids ids;
    std::uint32_t epoch = 0;
    std::variant<PublisherReport, SubscriberReport> body;
};

struct Error {
    Ids ids;
    std::uint32_t epoch = 0;
    std::string message;
    bool fatal = false;
};

struct ChildExit {
    Ids ids;
    std::uint32_t pid = 0;
    int status = 0;
    bool replaced = false;
};

using FromClient = std::variant<Hello, Ready, Ack, Progress, Report, Error, ChildExit>;

// --- controller → client; no ids means every client of the connection -----------------------------------

struct Welcome {
    Ids ids;
    std::string run;
    double silence_s = 0;
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
};

struct PublisherEndpoint {
    Id publisher = 0;
    std::string endpoint;
    bool operator==(const PublisherEndpoint&) const = default;
};

using Offsets = std::map<std::int32_t, std::int64_t>;  // by partition

struct KafkaTopic {
    std::string bootstrap;
    std::string topic;
    Offsets offsets;
    std::map<std::string, std::string> properties;
};

struct Configure {
    Ids ids;
    std::uint32_t epoch = 0;
    Settings settings;
    std::vector<PublisherEndpoint> publishers;
    bool probe = false;
    double progress_s = 0;
    std::optional<KafkaTopic> kafka;
};

struct Start {
    Ids ids;
    std::uint32_t epoch = 0;
    std::int64_t start_at_ns = 0;
    std::int64_t stop_at_ns = 0;
    std::int64_t wall_offset_ns = 0;
    std::string boot_id;
};

struct Stop {
    Ids ids;
    std::uint32_t epoch = 0;
    std::int64_t stop_at_ns = 0;
};

struct Sent {
    Id publisher = 0;
    std::uint64_t sent = 0;
    std::vector<Range> unacknowledged;
};

struct Finish {
    Ids ids;
    std::uint32_t epoch = 0;
    std::vector<Sent> publishers;
    Offsets end_offsets;
    double drain_max_s = 0;
    double quiet_s = 0.5;
};

struct Ping {
    Ids ids;
    std::int64_t time_ns = 0;
    bool reply = false;
};

struct Quit {
    Ids ids;
};

using FromController = std::variant<Welcome, Configure, Start, Stop, Finish, Ping, Quit>;

}  // namespace hydra
