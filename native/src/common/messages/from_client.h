// The messages from clients to their relay, and from relays to the controller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/messages/hosts.h"
#include "common/messages/reports.h"

namespace hydra {

struct Hello {
    Ids ids;
    int version = kVersion;
    Role role = Role::publisher;
    std::string group;
    std::uint32_t incarnation = 0;
    std::string implementation;
    std::map<std::string, std::string> versions;
    std::string agent;
    std::string host;
    std::string boot_id;
    std::string time_namespace;
    std::string network_namespace;
    std::uint32_t pid = 0;

    static constexpr const char* kType = "hello";
    static void describe(auto& it, auto& fields) {
        fields.required("v", it.version, Whole{kVersion, kVersion});
        fields.required("role", it.role);
        fields.required("group", it.group);
        fields.required("incarnation", it.incarnation);
        fields.required("implementation", it.implementation);
        fields.required("versions", it.versions);
        fields.required("agent", it.agent);
        fields.required("host", it.host);
        fields.required("boot_id", it.boot_id);
        fields.required("time_namespace", it.time_namespace);
        fields.required("network_namespace", it.network_namespace);
        fields.required("pid", it.pid);
    }
};

// These clients have joined, with their incarnations and pids in the order of `ids`.
struct Joined {
    Ids ids;
    std::vector<std::int64_t> incarnations;
    std::vector<std::int64_t> pids;

    static constexpr const char* kType = "joined";
    static void describe(auto& it, auto& fields) {
        fields.required("incarnations", it.incarnations, Whole{0, UINT32_MAX});
        fields.required("pids", it.pids, Whole{0, UINT32_MAX});
    }
};

struct Ready {
    Ids ids;
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;  // of the command that it answers; 0: none
    std::string endpoint;

    static constexpr const char* kType = "ready";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.optional("number", it.number);
        fields.optional("endpoint", it.endpoint);
    }
};

struct Ack {
    Ids ids;
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;  // of the command that it answers; 0: none
    std::string command;
    std::int64_t time_ns = 0;
    std::int64_t echo = 0;

    static constexpr const char* kType = "ack";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.optional("number", it.number);
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

// One second of a step, counted from its start: the number of messages sent or received, and their latency.
struct SecondCounts {
    std::uint64_t second = 0;
    std::uint64_t messages = 0;
    HistogramCounts latency;

    static void describe(auto& it, auto& fields) {
        fields.required("second", it.second);
        fields.required("messages", it.messages);
        fields.optional("latency", it.latency);
    }
};

// Counts that add to those of earlier messages. A client's own counts are in `seconds`.
struct TimeSeries {
    Ids ids;
    std::uint32_t epoch = 0;
    std::vector<SecondCounts> seconds;
    std::vector<SecondCounts> cohort;

    static constexpr const char* kType = "course";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("seconds", it.seconds);
        fields.optional("cohort", it.cohort);
    }
};

// A publisher's; subscribers send a batch.
struct Report {
    Ids ids;
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;  // of the command that it answers; 0: none
    PublisherReport publisher;
    std::nullptr_t subscriber{};

    static constexpr const char* kType = "report";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.optional("number", it.number);
        fields.required("publisher", it.publisher);
        fields.optional("subscriber", it.subscriber);
    }
};

// A column of a batch and its number of items.
struct ColumnCount {
    std::string name;
    std::uint64_t count = 0;
    bool operator==(const ColumnCount&) const = default;

    static constexpr std::size_t kItems = 2;
    static void items(auto& it, const auto& each) {
        each(it.name);
        each(it.count);
    }
};

// The first frame of subscribers' reports in binary columns; the columns are the second frame.
struct BatchHead {
    Ids ids;
    std::uint32_t epoch = 0;
    std::optional<std::uint32_t> number{};  // from clients: of the `finish` that it answers
    std::vector<ColumnCount> columns;

    static constexpr const char* kType = "batch";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.present("number", it.number);
        fields.required("columns", it.columns);
    }
};

struct Error {
    Ids ids;
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;  // of the command that it answers; 0: none
    std::string message;
    bool fatal = false;

    static constexpr const char* kType = "error";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.optional("number", it.number);
        fields.required("message", it.message);
        fields.optional("fatal", it.fatal);
    }
};

struct ChildExit {
    Ids ids;
    std::uint32_t incarnation = 0;
    std::uint32_t pid = 0;
    int status = 0;
    bool replaced = false;

    static constexpr const char* kType = "child_exit";
    static void describe(auto& it, auto& fields) {
        fields.required("incarnation", it.incarnation);
        fields.required("pid", it.pid);
        fields.required("status", it.status, Whole{-255, 255});
        fields.required("replaced", it.replaced);
    }
};

// The samples of a `watch` since the last message. One message, perhaps without samples, answers its end.
struct HostReadings {
    Ids ids;
    std::uint32_t epoch = 0;
    std::vector<Sample> samples;

    static constexpr const char* kType = "host";
    static void describe(auto& it, auto& fields) {
        fields.required("epoch", it.epoch);
        fields.required("samples", it.samples);
    }
};

// The answer to `look`: the beginnings of the files that match its patterns, by path.
struct KernelTexts {
    Ids ids;
    std::uint32_t number = 0;
    std::int64_t time_ns = 0;  // CLOCK_MONOTONIC at the reading
    std::map<std::string, std::string> texts;
    bool complete = true;  // false: files were left out, because they do not fit into a message

    static constexpr const char* kType = "texts";
    static void describe(auto& it, auto& fields) {
        fields.required("number", it.number);
        fields.required("time_ns", it.time_ns);
        fields.required("texts", it.texts);
        fields.optional("complete", it.complete);
    }
};

// A client sends its relay those up to Error, except Joined. A relay sends the controller all.
using FromClient = std::variant<Hello, Joined, Ready, Ack, Progress, TimeSeries, Report, BatchHead, Error,
                                ChildExit, HostReadings, KernelTexts>;

}  // namespace hydra
