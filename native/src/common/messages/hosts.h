// What a relay reports about its host.
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
    double steal_s = 0;  // taken by the hypervisor; no part of busy_s
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
    std::optional<std::uint64_t> speed_mbit;  // none: unknown
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

// A host's counters since boot.
struct HostCounters {
    std::vector<CoreTimes> cores;
    std::map<std::string, std::uint64_t> pressure_us;  // a task waited for "cpu", "memory", "io" this long
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

// The use of a thread since the previous reading, in % of the time: running, or ready and waiting for a core.
struct BusyThread {
    std::uint32_t pid = 0;  // of its process
    std::string name;
    double cpu_pct = 0;
    double wait_pct = 0;
    std::uint32_t tid = 0;
    double quota_pct = 0;  // the quota of its control group was used up

    static void describe(auto& it, auto& fields) {
        fields.required("pid", it.pid);
        fields.required("name", it.name);
        fields.required("cpu_pct", it.cpu_pct, Number{0, 1e9});
        fields.optional("wait_pct", it.wait_pct, Number{0, 1e9});
        fields.optional("tid", it.tid);
        fields.optional("quota_pct", it.quota_pct, Number{0, 1e9});
    }
};

// The TCP connections of a group's processes that sent data since the previous reading. (Python:
// hydra/model/machine.py.)
struct Connections {
    std::uint64_t sending = 0;
    std::uint64_t reader_limited = 0;   // of those: the receive window was closed half of the time
    std::uint64_t network_limited = 0;  // of those: the network could not take all data
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

// One reading of a host and a group.
struct Sample {
    std::int64_t time_ns = 0;  // CLOCK_MONOTONIC
    std::optional<HostCounters> host;
    std::vector<BusyThread> threads;  // the busiest of the group's processes
    std::optional<Connections> connections;

    static void describe(auto& it, auto& fields) {
        fields.required("time_ns", it.time_ns);
        fields.optional("host", it.host);
        fields.optional("threads", it.threads);
        fields.optional("connections", it.connections);
    }
};

}  // namespace hydra
