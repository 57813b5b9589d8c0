#include "common/linux_process.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/environment.h"

namespace hydra {
namespace {

constexpr int kMostCpus = 8192;  // NR_CPUS of a Linux kernel

struct CpuSet {
    std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> cpus{CPU_ALLOC(kMostCpus),
                                                          [](cpu_set_t* it) { CPU_FREE(it); }};
    std::size_t bytes = CPU_ALLOC_SIZE(kMostCpus);

    CpuSet() { CPU_ZERO_S(bytes, cpus.get()); }
};

[[noreturn]] void refuse(const std::string& cpus, const std::string& why) {
    throw EnvironmentError("the environment variable HYDRA_CPUS is " + cpus + ": " + why);
}

int cpu_of(const std::string& word, const std::string& cpus) {
    int cpu = -1;
    const char* end = word.data() + word.size();
    const auto [stopped, error] = std::from_chars(word.data(), end, cpu);
    if (error != std::errc() || stopped != end || cpu < 0 || cpu >= kMostCpus) {
        refuse(cpus, "no list of CPUs such as 0-3,8");
    }
    return cpu;
}

}  // namespace

void confine_to(const std::string& cpus) {
    if (cpus.empty()) {
        return;
    }
    CpuSet wanted;
    std::istringstream parts(cpus);
    for (std::string part; std::getline(parts, part, ',');) {
        const std::size_t dash = part.find('-');
        const int first = cpu_of(part.substr(0, dash), cpus);
        const int last = dash == std::string::npos ? first : cpu_of(part.substr(dash + 1), cpus);
        for (int cpu = first; cpu <= last; ++cpu) {
            CPU_SET_S(static_cast<std::size_t>(cpu), wanted.bytes, wanted.cpus.get());
        }
    }
    CpuSet given;
    if (sched_setaffinity(0, wanted.bytes, wanted.cpus.get()) != 0 ||
        sched_getaffinity(0, given.bytes, given.cpus.get()) != 0) {
        refuse(cpus, std::strerror(errno));
    }
    // The kernel leaves out CPUs that the control group does not have.
    if (!CPU_EQUAL_S(wanted.bytes, wanted.cpus.get(), given.cpus.get())) {
        refuse(cpus, "this process has not all of these CPUs here");
    }
}

void die_with_parent(pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
        throw std::system_error(errno, std::generic_category(), "prctl(PR_SET_PDEATHSIG)");
    }
    if (getppid() != parent) {
        _exit(1);
    }
}

int thread_count() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

Pipe::Pipe() {
    if (pipe(ends_) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe");
    }
}

void Pipe::close_end(int which) {
    if (ends_[which] >= 0) {
        close(ends_[which]);
        ends_[which] = -1;
    }
}

}  // namespace hydra
