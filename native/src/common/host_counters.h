// What this host does, and the processes of a group on it: read from /proc, a few files for each sample.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/messages/hosts.h"
#include "common/proc_texts.h"

namespace hydra {

// A file of the kernel's; "" where it cannot be read, because there are no such counters or the process has
// ended.
std::string text_of(const std::string& path);

// CPU that this thread has used: on a busy machine, reading takes longer than it costs.
std::int64_t thread_cpu_ns();

class HostSampler {
  public:
    [[nodiscard]] HostCounters read();

  private:
    // Asked once for each interface: a driver may take its time to answer.
    std::map<std::string, std::optional<std::uint64_t>> speeds_mbit_;
};

// The busiest threads of a process and of all that descend from it.
class ThreadSampler {
  public:
    // Of `most` of the processes at most.
    ThreadSampler(pid_t parent, std::size_t most) : parent_(parent), most_(most) {}

    // Since they were read before, those that wanted most CPU first; none the first time. While reading them
    // again would take more than its share of a core, they are said to be as busy as before.
    [[nodiscard]] std::vector<BusyThread> busiest();

    // Those that were read last.
    [[nodiscard]] const std::vector<pid_t>& processes() const { return processes_; }

  private:
    struct Thread {
        pid_t process;
        std::string name;
        TaskTimes times;
    };
    using Threads = std::map<pid_t, Thread>;

    [[nodiscard]] std::vector<BusyThread> since_before(std::int64_t now_ns);
    [[nodiscard]] Threads read();

    pid_t parent_;
    std::size_t most_;
    std::vector<pid_t> processes_;
    std::vector<BusyThread> busiest_;
    Threads before_;
    std::int64_t before_ns_ = kNeverNs;
    std::int64_t due_ns_ = 0;
};

}  // namespace hydra
