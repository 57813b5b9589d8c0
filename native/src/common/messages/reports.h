// The reports of clients about a step.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/messages/parts.h"

namespace hydra {

// Sparse HDR counts: index, count, index, count, …; see histogram.h for the index of a value. Latencies below
// zero occur between hosts whose clocks differ by more than the latency.
struct HistogramCounts {
    std::vector<std::int64_t> counts;
    std::int64_t min_us = 0;
    std::int64_t max_us = 0;

    static void describe(auto& it, auto& fields) {
        fields.required("counts", it.counts, kSigned);
        fields.required("min_us", it.min_us, kSigned);
        fields.required("max_us", it.max_us, kSigned);
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
    std::string received_bits;  // of a member of a consumer group, see bitmap.h
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
        fields.optional("received_bits", it.received_bits);
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
    std::string stopped_early;
    bool unacknowledged_joined = false;
    SystemObject system;
    HistogramCounts ack_latency;

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
        fields.optional("stopped_early", it.stopped_early);
        fields.optional("unacknowledged_joined", it.unacknowledged_joined);
        fields.optional("system", it.system);
        fields.optional("ack_latency", it.ack_latency);
    }
};

enum class DrainEnd { complete, marked, quiet, deadline };

constexpr std::array<const char*, 4> words(DrainEnd) {
    return {"complete", "marked", "quiet", "deadline"};
}

struct Interval {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;

    static constexpr std::size_t kItems = 2;
    static void items(auto& it, const auto& each) {
        each(it.begin_ns);
        each(it.end_ns);
    }
};

// A subscriber's account of the tenth of the topics that have most messages.
struct HotTopics {
    std::uint64_t expected = 0;
    std::uint64_t missing = 0;
    HistogramCounts latency;

    static void describe(auto& it, auto& fields) {
        fields.required("expected", it.expected);
        fields.required("missing", it.missing);
        fields.required("latency", it.latency);
    }
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
    SystemObject system;
    std::optional<HotTopics> hot;  // none with one topic

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
        fields.optional("system", it.system);
        fields.present("hot", it.hot);
    }
};

}  // namespace hydra
