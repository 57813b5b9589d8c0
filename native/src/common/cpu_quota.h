// How long the CPU quota of a control group stopped processes, from the kernel's counters. (Python:
// hydra/client/process_sampler.py.)
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hydra {

class QuotaReader {
  public:
    // The folders of the kernel's files about processes, and in which control groups are mounted.
    explicit QuotaReader(std::filesystem::path proc = "/proc",
                         std::filesystem::path groups = "/sys/fs/cgroup")
        : proc_(std::move(proc)), groups_(std::move(groups)) {}

    // The time since the groups of each process exist, ns: the sum over its group and those above it, of all
    // cores. 0 if there is no quota. Processes of one group cost one reading.
    [[nodiscard]] std::map<pid_t, std::int64_t> stopped_ns(const std::set<pid_t>& processes);

  private:
    [[nodiscard]] std::vector<std::string> folders_of(pid_t process) const;

    std::filesystem::path proc_;
    std::filesystem::path groups_;
    std::map<pid_t, std::vector<std::string>> folders_;  // of the processes of the last reading
};

}  // namespace hydra
