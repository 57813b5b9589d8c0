#include <nlohmann/json.hpp>

#include "common/protocol.h"

namespace hydra {
namespace {

// Keeps the order in which fields are given, which is the page's.
using nlohmann::ordered_json;

const char* name(Role role) {
    return role == Role::publisher ? "publisher" : "subscriber";
}

const char* name(DrainEnd end) {
    switch (end) {
        case DrainEnd::complete:
            return "complete";
        case DrainEnd::marked:
            return "marked";
        case DrainEnd::quiet:
            return "quiet";
        default:
            return "deadline";
    }
}

ordered_json pairs(const std::vector<Range>& ranges) {
    ordered_json all = ordered_json::array();
    for (const Range& range : ranges) {
        all.push_back(ordered_json::array({range.first, range.last}));
    }
    return all;
}

ordered_json pairs(const std::vector<Interval>& intervals) {
    ordered_json all = ordered_json::array();
    for (const Interval& interval : intervals) {
        all.push_back(ordered_json::array({interval.begin_ns, interval.end_ns}));
    }
    return all;
}

ordered_json numbers_or_nulls(const std::vector<std::optional<std::uint64_t>>& values) {
    ordered_json all = ordered_json::array();
    for (const std::optional<std::uint64_t>& value : values) {
        all.push_back(value ? ordered_json(*value) : ordered_json(nullptr));
    }
    return all;
}

ordered_json body(const HistogramCounts& histogram) {
    return {{"counts", histogram.counts}, {"min_us", histogram.min_us}, {"max_us", histogram.max_us}};
}

ordered_json body(const Usage& usage) {
    return {{"cpu_user_s", usage.cpu_user_s},
            {"cpu_system_s", usage.cpu_system_s},
            {"max_rss_bytes", usage.max_rss_bytes}};
}

ordered_json body(const LedgerCounts& ledger) {
    return {{"publisher", ledger.publisher},
            {"received", ledger.received},
            {"in_window", ledger.in_window},
            {"missing", ledger.missing},
            {"missing_ranges", pairs(ledger.missing_ranges)},
            {"truncated", ledger.truncated},
            {"duplicates", ledger.duplicates},
            {"reordered", ledger.reordered},
            {"extra", ledger.extra}};
}

ordered_json body(const PublisherReport& report) {
    return {{"sent", report.sent},
            {"acknowledged", report.acknowledged},
            {"failed", report.failed},
            {"first_ns", report.first_ns},
            {"last_ns", report.last_ns},
            {"bytes", report.bytes},
            {"lag", body(report.lag)},
            {"usage", body(report.usage)},
            {"unacknowledged", pairs(report.unacknowledged)},
            {"blocked_ns", report.blocked_ns},
            {"batch_bytes", report.batch_bytes},
            {"stopped_early", report.stopped_early},
            {"unacknowledged_joined", report.unacknowledged_joined}};
}

ordered_json body(const SubscriberReport& report) {
    ordered_json ledgers = ordered_json::array();
    for (const LedgerCounts& ledger : report.ledgers) {
        ledgers.push_back(body(ledger));
    }
    return {{"ledgers", std::move(ledgers)},
            {"batches", report.batches},
            {"first_batch", report.first_batch},
            {"first_ns", report.first_ns},
            {"last_ns", report.last_ns},
            {"bytes", report.bytes},
            {"stale", report.stale},
            {"latency", body(report.latency)},
            {"usage", body(report.usage)},
            {"undrained", report.undrained},
            {"absent", pairs(report.absent)},
            {"reconnects", report.reconnects},
            {"felt", report.felt},
            {"drain", name(report.drain)},
            {"lag_bins_us", numbers_or_nulls(report.lag_bins_us)}};
}

ordered_json begin(const char* type, const Ids& ids, std::uint64_t seq) {
    return {{"type", type}, {"v", 1}, {"ids", ids}, {"seq", seq}};
}

struct Encoder {
    std::uint64_t seq;

    ordered_json operator()(const Hello& hello) const {
        ordered_json it = begin("hello", hello.ids, seq);
        it["role"] = name(hello.role);
        it["group"] = hello.group;
        it["warden"] = hello.warden;
        it["incarnation"] = hello.incarnation;
        it["implementation"] = hello.implementation;
        it["versions"] = hello.versions;
        it["agent"] = hello.agent;
        it["host"] = hello.host;
        it["boot_id"] = hello.boot_id;
        it["pid"] = hello.pid;
        return it;
    }

    ordered_json operator()(const Ready& ready) const {
        ordered_json it = begin("ready", ready.ids, seq);
        it["epoch"] = ready.epoch;
        it["endpoint"] = ready.endpoint;
        return it;
    }

    ordered_json operator()(const Ack& ack) const {
        ordered_json it = begin("ack", ack.ids, seq);
        it["epoch"] = ack.epoch;
        it["command"] = ack.command;
        it["time_ns"] = ack.time_ns;
        it["echo"] = ack.echo;
        return it;
    }

    ordered_json operator()(const Progress& progress) const {
        ordered_json it = begin("progress", progress.ids, seq);
        it["epoch"] = progress.epoch;
        it["messages"] = progress.messages;
        it["time_ns"] = progress.time_ns;
        return it;
    }

    ordered_json operator()(const Report& report) const {
        ordered_json it = begin("report", report.ids, seq);
        it["epoch"] = report.epoch;
        it["publisher"] = nullptr;
        it["subscriber"] = nullptr;
        const bool publisher = std::holds_alternative<PublisherReport>(report.body);
        it[publisher ? "publisher" : "subscriber"] =
            std::visit([](const auto& one) { return body(one); }, report.body);
        return it;
    }

    ordered_json operator()(const Error& error) const {
        ordered_json it = begin("error", error.ids, seq);
        it["epoch"] = error.epoch;
        it["message"] = error.message;
        it["fatal"] = error.fatal;
        return it;
    }

    ordered_json operator()(const ChildExit& exit) const {
        ordered_json it = begin("child_exit", exit.ids, seq);
        it["pid"] = exit.pid;
        it["status"] = exit.status;
        it["replaced"] = exit.replaced;
        return it;
    }
};

}  // namespace

std::string encode(const FromClient& message, std::uint64_t seq) {
    // A host's name or a library's text may be no UTF-8; it must not cost the client its life.
    return std::visit(Encoder{seq}, message).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace hydra
