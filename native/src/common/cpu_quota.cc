#include "common/cpu_quota.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

namespace hydra {
namespace {

constexpr std::int64_t kNsPerUs = 1'000;

// The time of one group: version 1 counts it in ns, version 2 in µs.
std::int64_t time_of(const std::string& folder) {
    std::ifstream lines(folder + "/cpu.stat");
    std::string name;
    for (std::int64_t value = 0; lines >> name >> value;) {
        if (name == "throttled_time") {
            return value;
        }
        if (name == "throttled_usec") {
            return value * kNsPerUs;
        }
    }
    return 0;
}

bool has_cpu(const std::string& controllers) {
    std::istringstream all(controllers);
    for (std::string each; std::getline(all, each, ',');) {
        if (each == "cpu") {
            return true;
        }
    }
    return false;
}

}  // namespace

std::map<pid_t, std::int64_t> QuotaReader::stopped_ns(const std::set<pid_t>& processes) {
    std::map<pid_t, std::vector<std::string>> known = std::exchange(folders_, {});
    std::map<std::string, std::int64_t> times;
    std::map<pid_t, std::int64_t> stopped;
    for (const pid_t process : processes) {
        const auto found = known.find(process);
        auto& folders = folders_[process] =
            found == known.end() ? folders_of(process) : std::move(found->second);
        for (const std::string& folder : folders) {
            const auto [time, added] = times.try_emplace(folder);
            if (added) {
                time->second = time_of(folder);
            }
            stopped[process] += time->second;
        }
    }
    return stopped;
}

// A line has the number of the hierarchy, its controllers (none in version 2) and the path of the group.
std::vector<std::string> QuotaReader::folders_of(pid_t process) const {
    std::vector<std::string> folders;
    std::ifstream lines(proc_ / std::to_string(process) / "cgroup");
    for (std::string line; std::getline(lines, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
        if (second == line.npos) {
            continue;
        }
        const std::string controllers = line.substr(first + 1, second - first - 1);
        std::filesystem::path inside = std::filesystem::path(line.substr(second + 1)).relative_path();
        const bool outside = std::ranges::find(inside, "..") != inside.end();
        if (outside || (!controllers.empty() && !has_cpu(controllers))) {
            continue;
        }
        const std::filesystem::path mounted = controllers.empty() ? groups_ : groups_ / "cpu";
        for (; !inside.empty(); inside = inside.parent_path()) {
            folders.push_back((mounted / inside).string());
        }
        folders.push_back(mounted.string());
    }
    return folders;
}

}  // namespace hydra
