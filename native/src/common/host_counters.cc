#include "common/host_counters.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/clock.h"
#include "common/proc_texts.h"

namespace hydra {
namespace {

double ticks_per_s() {
    static const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    return ticks;
}

// From the network namespace itself, because /sys may show another's interfaces.
std::optional<std::uint64_t> link_speed_mbit(const std::string& interface) {
    ethtool_cmd command{};
    command.cmd = ETHTOOL_GSET;
    ifreq request{};
    interface.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&command);
    const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool answered = ioctl(any, SIOCETHTOOL, &request) == 0;
    close(any);
    const std::uint32_t speed = ethtool_cmd_speed(&command);
    constexpr auto kUnknown = static_cast<std::uint32_t>(SPEED_UNKNOWN);
    constexpr std::uint32_t kUnknownBefore = UINT16_MAX;  // from drivers that fill only 16 bits
    if (!answered || speed == 0 || speed == kUnknown || speed == kUnknownBefore) {
        return std::nullopt;
    }
    return speed;
}

std::string tasks_of(pid_t process) {
    return "/proc/" + std::to_string(process) + "/task";
}

std::vector<pid_t> threads_of(pid_t process) {
    std::vector<pid_t> threads;
    std::error_code error;
    std::filesystem::directory_iterator task(tasks_of(process), error);
    while (!error && task != std::filesystem::directory_iterator()) {
        const std::string name = task->path().filename();
        std::from_chars(name.data(), name.data() + name.size(), threads.emplace_back());
        task.increment(error);
    }
    return threads;
}

}  // namespace

std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    // Unlike an iterator over the file, this does not throw if a process ends between opening and reading.
    text << file.rdbuf();
    return text.str();
}

std::int64_t thread_cpu_ns() {
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * kSecondNs + used.tv_nsec;
}

HostCounters HostSampler::read() {
    CpuFigures cpu = cpu_figures(text_of("/proc/stat"), ticks_per_s());
    const MemoryFigures memory = memory_figures(text_of("/proc/meminfo"));
    HostCounters it{.cores = std::move(cpu.cores),
                    .pressure_us = {},
                    .memory_total = memory.total,
                    .memory_available = memory.available,
                    .interfaces = interface_counts(text_of("/proc/self/net/dev")),
                    .tcp = tcp_counts(text_of("/proc/self/net/snmp"), text_of("/proc/self/net/netstat")),
                    .context_switches = cpu.context_switches};
    for (const std::string resource : {"cpu", "memory", "io"}) {
        if (const auto waited_us = pressure_us(text_of("/proc/pressure/" + resource))) {
            it.pressure_us[resource] = *waited_us;
        }
    }
    for (auto& [name, counts] : it.interfaces) {
        const auto [known, added] = speeds_mbit_.try_emplace(name);
        if (added) {
            known->second = link_speed_mbit(name);
        }
        counts.speed_mbit = known->second;
    }
    return it;
}

std::vector<BusyThread> ThreadSampler::busiest() {
    const std::int64_t now_ns = monotonic_ns();
    if (now_ns >= due_ns_) {
        const std::int64_t used_ns = thread_cpu_ns();
        // Without a second reading there is no result at all, so its cost is not limited.
        const bool first = before_ns_ == kNeverNs;
        busiest_ = since_before(now_ns);
        due_ns_ = first ? 0 : now_ns + (thread_cpu_ns() - used_ns) * kReadOneIn;
    }
    return busiest_;
}

std::vector<BusyThread> ThreadSampler::since_before(std::int64_t now_ns) {
    Threads threads = read();
    std::vector<BusyThread> busy;
    for (const auto& [id, thread] : threads) {
        // A new thread has done all of its work since the previous reading.
        const auto before = before_.find(id);
        const TaskTimes last = before == before_.end() ? TaskTimes{} : before->second.times;
        const double run_s = thread.times.run_s - last.run_s;
        if (run_s > 0 && now_ns > before_ns_) {
            const auto pct = [&](double seconds) {
                return std::round(10000 * seconds * kSecondNs / static_cast<double>(now_ns - before_ns_)) /
                       100;
            };
            busy.push_back({.pid = static_cast<std::uint32_t>(thread.process),
                            .name = thread.name,
                            .cpu_pct = pct(run_s),
                            .wait_pct = pct(std::max(thread.times.wait_s - last.wait_s, 0.0)),
                            .tid = static_cast<std::uint32_t>(id)});
        }
    }
    std::ranges::sort(busy, std::greater(), [](const BusyThread& it) { return it.cpu_pct + it.wait_pct; });
    busy.resize(std::min(busy.size(), kMaxThreads));
    add_quota(busy, now_ns - before_ns_);
    before_ = std::move(threads);
    before_ns_ = now_ns;
    return busy;
}

// A process that was not among the busiest before has no earlier time.
void ThreadSampler::add_quota(std::vector<BusyThread>& busy, std::int64_t elapsed_ns) {
    std::set<pid_t> processes;
    for (const BusyThread& it : busy) {
        processes.insert(static_cast<pid_t>(it.pid));
    }
    std::map<pid_t, std::int64_t> stopped_ns = quota_.stopped_ns(processes);
    for (BusyThread& it : busy) {
        const auto process = static_cast<pid_t>(it.pid);
        if (const auto before = stopped_ns_.find(process); before != stopped_ns_.end()) {
            const auto stopped = static_cast<double>(stopped_ns[process] - before->second);
            it.quota_pct = std::min(100 * stopped / static_cast<double>(elapsed_ns), 100.0);
        }
    }
    stopped_ns_ = std::move(stopped_ns);
}

// Any process or thread may end meanwhile.
ThreadSampler::Threads ThreadSampler::read() {
    Threads threads;
    processes_.clear();
    std::vector<pid_t> waiting{parent_};
    while (!waiting.empty() && processes_.size() < most_) {
        const pid_t process = waiting.back();
        waiting.pop_back();
        processes_.push_back(process);
        for (const pid_t thread : threads_of(process)) {
            const std::string folder = tasks_of(process) + "/" + std::to_string(thread);
            if (auto figures = task_figures(text_of(folder + "/stat"), ticks_per_s())) {
                // A kernel that does not count the threads' waiting times has ticks of CPU.
                const TaskTimes ticks{.run_s = figures->cpu_s, .wait_s = 0};
                threads[thread] = {process, std::move(figures->name),
                                   task_times(text_of(folder + "/schedstat")).value_or(ticks)};
            }
            // Each thread has its own list of the children that it forked.
            std::ifstream children(folder + "/children");
            std::copy(std::istream_iterator<pid_t>(children), {}, std::back_inserter(waiting));
        }
    }
    return threads;
}

}  // namespace hydra
