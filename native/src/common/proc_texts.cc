#include "common/proc_texts.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <numeric>

namespace hydra {
namespace {

constexpr std::string_view kLoopback = "lo";
constexpr std::uint64_t kKibibyte = 1024;

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    std::size_t begin = 0;
    while ((begin = line.find_first_not_of(' ', begin)) != std::string_view::npos) {
        const std::size_t end = std::min(line.find(' ', begin), line.size());
        words.push_back(line.substr(begin, end - begin));
        begin = end;
    }
    return words;
}

// 0 if there is no such word, or it is no number.
std::uint64_t number(const std::vector<std::string_view>& words, std::size_t index) {
    std::uint64_t it = 0;
    if (index < words.size()) {
        std::from_chars(words[index].data(), words[index].data() + words[index].size(), it);
    }
    return it;
}

// The number with this name, from a line of names that begins with `of` and the line of their numbers; 0 if
// there is none.
std::uint64_t named(std::string_view text, std::string_view of, std::string_view name) {
    std::vector<std::string_view> names;
    for (const std::string_view line : lines_of(text)) {
        const auto words = words_of(line);
        if (words.empty() || words[0] != of) {
            continue;
        }
        if (!names.empty()) {
            return number(words, static_cast<std::size_t>(std::ranges::find(names, name) - names.begin()));
        }
        names = words;
    }
    return 0;
}

// user, nice, system, idle, iowait, irq, softirq, steal; the guests' times that follow are included in user
// and nice.
CoreTimes core_times(const std::vector<std::string_view>& words, double ticks_per_s) {
    constexpr std::size_t kIdle = 4;
    constexpr std::size_t kIowait = 5;
    constexpr std::size_t kSteal = 8;
    std::uint64_t total = 0;
    for (std::size_t i = 1; i <= kSteal; ++i) {
        total += number(words, i);
    }
    const std::uint64_t steal = number(words, kSteal);
    const std::uint64_t busy = total - number(words, kIdle) - number(words, kIowait) - steal;
    return {.busy_s = static_cast<double>(busy) / ticks_per_s,
            .steal_s = static_cast<double>(steal) / ticks_per_s,
            .total_s = static_cast<double>(total) / ticks_per_s};
}

}  // namespace

CpuFigures cpu_figures(std::string_view stat, double ticks_per_s) {
    CpuFigures it;
    for (const std::string_view line : lines_of(stat)) {
        const auto words = words_of(line);
        if (words.empty()) {
            continue;
        }
        if (words[0] == "ctxt") {
            it.context_switches = number(words, 1);
        } else if (words[0].starts_with("cpu") && words[0] != "cpu") {
            it.cores.push_back(core_times(words, ticks_per_s));
        }
    }
    return it;
}

std::optional<std::uint64_t> pressure_us(std::string_view pressure) {
    constexpr std::string_view kTotal = "total=";
    for (const std::string_view line : lines_of(pressure)) {
        const auto words = words_of(line);
        if (words.size() >= 2 && words[0] == "some" && words.back().starts_with(kTotal)) {
            return number({words.back().substr(kTotal.size())}, 0);
        }
    }
    return std::nullopt;
}

MemoryFigures memory_figures(std::string_view meminfo) {
    MemoryFigures it;
    for (const std::string_view line : lines_of(meminfo)) {
        const auto words = words_of(line);
        if (words.empty()) {
            continue;
        }
        if (words[0] == "MemTotal:") {
            it.total = number(words, 1) * kKibibyte;
        } else if (words[0] == "MemAvailable:") {
            it.available = number(words, 1) * kKibibyte;
        }
    }
    return it;
}

std::map<std::string, InterfaceCounts> interface_counts(std::string_view net_dev) {
    std::map<std::string, InterfaceCounts> all;
    for (const std::string_view line : lines_of(net_dev)) {
        // A long counter may follow the colon without a space; the headings have no colon.
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) {
            continue;
        }
        const auto name = words_of(line.substr(0, colon));
        const auto counts = words_of(line.substr(colon + 1));
        if (name.size() != 1 || name[0] == kLoopback) {
            continue;
        }
        // bytes, packets, errors, drops and four others; first received, then sent.
        all[std::string(name[0])] = {.rx_bytes = number(counts, 0),
                                     .tx_bytes = number(counts, 8),
                                     .rx_drops = number(counts, 3),
                                     .tx_drops = number(counts, 11)};
    }
    return all;
}

TcpCounts tcp_counts(std::string_view snmp, std::string_view netstat) {
    return {.segments_out = named(snmp, "Tcp:", "OutSegs"),
            .segments_retransmitted = named(netstat, "TcpExt:", "TCPFastRetrans") +
                                      named(netstat, "TcpExt:", "TCPSlowStartRetrans")};
}

std::optional<TaskFigures> task_figures(std::string_view stat, double ticks_per_s) {
    // "PID (NAME) S …"; the name may contain any character.
    const std::size_t begin = stat.find('(');
    const std::size_t end = stat.rfind(')');
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
        return std::nullopt;
    }
    // The fields from the third on: user and system time are the 14th and 15th.
    const auto fields = words_of(stat.substr(end + 1));
    if (fields.size() < 13) {
        return std::nullopt;
    }
    const std::uint64_t ticks = number(fields, 11) + number(fields, 12);
    return TaskFigures{.name = std::string(stat.substr(begin + 1, end - begin - 1)),
                       .cpu_s = static_cast<double>(ticks) / ticks_per_s};
}

std::optional<TaskTimes> task_times(std::string_view schedstat) {
    constexpr double kNanosecond = 1e-9;
    const auto words = words_of(schedstat);
    if (words.size() < 2) {
        return std::nullopt;
    }
    return TaskTimes{.run_s = static_cast<double>(number(words, 0)) * kNanosecond,
                     .wait_s = static_cast<double>(number(words, 1)) * kNanosecond};
}

}  // namespace hydra
