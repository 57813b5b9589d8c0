// Counters of this host and of a group's processes: read from /proc, a few files for each sample.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/cpu_quota.h"
#include "common/messages/hosts.h"
#include "common/proc_texts.h"

namespace hydra {

// Reading takes at most one part in this many of the time: thousands of threads or connections cost tens of
// milliseconds.
inline constexpr std::int64_t kReadOneIn = 50;

// The text of a kernel file; "" if it cannot be read, because the kernel has no such counters or the process
// has ended.
std::string text_of(const std::string& path);

// CPU time of this thread: on a busy host, the elapsed time of a reading is more than its cost.
std::int64_t thread_cpu_ns();

class HostSampler {
  public:
    [[nodiscard]] HostCounters read();

  private:
    // Read once for each interface: a driver may answer slowly.
    std::map<std::string, std::optional<std::uint64_t>> speeds_mbit_;
};

// The busiest threads of a process and its descendants.
class ThreadSampler {
  public:
    // Reads at most `most` of the processes.
    ThreadSampler(pid_t parent, std::size_t most) : parent_(parent), most_(most) {}

    // The busiest threads since the previous reading, ordered by CPU demand; none the first time. If another
    // reading would take more than its share of a core, the result is that of the last reading.
    [[nodiscard]] std::vector<BusyThread> busiest();

    // The processes of the last reading.
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
    void add_quota(std::vector<BusyThread>& busy, std::int64_t elapsed_ns);

    pid_t parent_;
    std::size_t most_;
    std::vector<pid_t> processes_;
    std::vector<BusyThread> busiest_;
    Threads before_;
    std::int64_t before_ns_ = kNeverNs;
    std::int64_t due_ns_ = 0;
    QuotaReader quota_;
    std::map<pid_t, std::int64_t> stopped_ns_;  // of the last reading
};

}  // namespace hydra
