// Parses the kernel's texts in /proc. Pure; if a text is missing or has another form, its figures stay 0 or
// are left out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/messages/hosts.h"

namespace hydra {

// /proc/stat, with times in ticks.
struct CpuFigures {
    std::vector<CoreTimes> cores;
    std::uint64_t context_switches = 0;
};
CpuFigures cpu_figures(std::string_view stat, double ticks_per_s);

// /proc/pressure/…: µs in which a task waited.
std::optional<std::uint64_t> pressure_us(std::string_view pressure);

// /proc/meminfo, in bytes.
struct MemoryFigures {
    std::uint64_t total = 0;
    std::uint64_t available = 0;
};
MemoryFigures memory_figures(std::string_view meminfo);

// /proc/net/dev, without the loopback; it has no speeds.
std::map<std::string, InterfaceCounts> interface_counts(std::string_view net_dev);

// /proc/net/snmp and /proc/net/netstat, without tail loss probes: processes that wait for a core send
// hundreds of them in a second, although nothing is lost.
TcpCounts tcp_counts(std::string_view snmp, std::string_view netstat);

// /proc/PID/stat, or the same file of a thread.
struct TaskFigures {
    std::string name;
    double cpu_s = 0;
};
std::optional<TaskFigures> task_figures(std::string_view stat, double ticks_per_s);

// /proc/PID/task/TID/schedstat: how long a thread has run, and how long it was ready and waited for a core.
struct TaskTimes {
    double run_s = 0;
    double wait_s = 0;
};
std::optional<TaskTimes> task_times(std::string_view schedstat);

}  // namespace hydra
