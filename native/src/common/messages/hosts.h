// What a relay tells of its host.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/messages/parts.h"

namespace hydra {

inline constexpr std::size_t kMaxSamples = 64;
inline constexpr std::size_t kMaxThreads = 10;

// A core's time since boot.
struct CoreTimes {
    double busy_s = 0;
    double steal_s = 0;  // given to others by the hypervisor: no part of the time at work
    double total_s = 0;
    bool operator==(const CoreTimes&) const = default;

    static constexpr std::size_t kItems = 3;
    static void items(auto& it, const auto& each) {
        each(it.busy_s, kSeconds);
        each(it.steal_s, kSeconds);
        each(it.total_s, kSeconds);
    }
};

struct InterfaceCounts {
    std::uint64_t rx_bytes = 0;
    std::uint64_t tx_bytes = 0;
    std::uint64_t rx_drops = 0;
    std::uint64_t tx_drops = 0;
    std::optional<std::uint64_t> speed_mbit;  // none: not known
    bool operator==(const InterfaceCounts&) const = default;

    static constexpr std::size_t kItems = 5;
    static void items(auto& it, const auto& each) {
        each(it.rx_bytes);
        each(it.tx_bytes);
        each(it.rx_drops);
        each(it.tx_drops);
        each(it.speed_mbit);
    }
};

struct TcpCounts {
    std::uint64_t segments_out = 0;
    std::uint64_t segments_retransmitted = 0;
    bool operator==(const TcpCounts&) const = default;

    static constexpr std::size_t kItems = 2;
    static void items(auto& it, const auto& each) {
        each(it.segments_out);
        each(it.segments_retransmitted);
    }
};

// A host's counters since boot, as they stand.
struct HostCounters {
    std::vector<CoreTimes> cores;
    std::map<std::string, std::uint64_t> pressure_us;  // how long something waited for "cpu", "memory", "io"
    std::uint64_t memory_total = 0;
    std::uint64_t memory_available = 0;
    std::map<std::string, InterfaceCounts> interfaces;  // without the loopback
    TcpCounts tcp;
    std::uint64_t context_switches = 0;

    static void describe(auto& it, auto& fields) {
        fields.required("cores", it.cores);
        fields.required("pressure_us", it.pressure_us);
        fields.required("memory_total", it.memory_total);
        fields.required("memory_available", it.memory_available);
        fields.required("interfaces", it.interfaces);
        fields.required("tcp", it.tcp);
        fields.required("context_switches", it.context_switches);
    }
};

// What a thread did since it was read before, in % of the time: it ran, or it could have and had to wait.
struct BusyThread {
    std::uint32_t pid = 0;  // its process's
    std::string name;
    double cpu_pct = 0;
    double wait_pct = 0;
    std::uint32_t tid = 0;

    static void describe(auto& it, auto& fields) {
        fields.required("pid", it.pid);
        fields.required("name", it.name);
        fields.required("cpu_pct", it.cpu_pct, Number{0, 1e9});
        fields.optional("wait_pct", it.wait_pct, Number{0, 1e9});
        fields.optional("tid", it.tid);
    }
};

// The TCP connections of a group's processes that carried something out since they were read before;
// hydra/model/host_samples.py says the same in Python.
struct Connections {
    std::uint64_t sending = 0;
    std::uint64_t reader_limited = 0;   // of those: the other end's receive window was shut half of the time
    std::uint64_t network_limited = 0;  // of those: more is to be sent than the way takes
    std::uint64_t unsent_bytes = 0;
    std::uint64_t unread_bytes = 0;
    bool operator==(const Connections&) const = default;

    static void describe(auto& it, auto& fields) {
        fields.required("sending", it.sending);
        fields.required("reader_limited", it.reader_limited);
        fields.required("network_limited", it.network_limited);
        fields.required("unsent_bytes", it.unsent_bytes);
        fields.required("unread_bytes", it.unread_bytes);
    }
};

// One reading.
struct Sample {
    std::int64_t time_ns = 0;  // CLOCK_MONOTONIC
    std::optional<HostCounters> host;
    std::vector<BusyThread> threads;  // the busiest, of the group's processes
    std::optional<Connections> connections;

    static void describe(auto& it, auto& fields) {
        fields.required("time_ns", it.time_ns);
        fields.optional("host", it.host);
        fields.optional("threads", it.threads);
        fields.optional("connections", it.connections);
    }
};

}  // namespace hydra
