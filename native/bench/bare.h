// Functions that the bare programs share.
#pragma once

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <new>
#include <string>
#include <vector>

inline std::int64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

inline void must(bool good, const char* what) {
    if (!good) {
        std::perror(what);
        std::exit(1);
    }
}

// Memory that this process shares with the processes that it forks.
template <class T>
T& shared_memory() {
    void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED, "mmap");
    return *new (memory) T;
}

// Forks a process that ends with this one; true in the new process.
inline bool forked(std::vector<pid_t>* children = nullptr) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
    } else if (children != nullptr) {
        children->push_back(pid);
    }
    return pid == 0;
}

// A value that the parent has only after the fork, for all its forks. They sleep until the parent has it: a
// thousand processes that look again and again would take all of the CPU.
template <typename T>
class Announcement {
  public:
    Announcement() { must(pipe(ends_.data()) == 0, "pipe"); }
    void make(const T& value, int processes) const {
        for (int i = 0; i < processes; ++i) {
            must(write(ends_[1], &value, sizeof value) == static_cast<ssize_t>(sizeof value), "write");
        }
    }
    [[nodiscard]] T await() const {
        T value{};
        must(read(ends_[0], &value, sizeof value) == static_cast<ssize_t>(sizeof value), "read");
        return value;
    }

  private:
    std::array<int, 2> ends_{};
};

// A TCP socket that listens on a free port of the loopback.
struct Listener {
    int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};

    Listener() {
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        must(bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
        must(listen(socket, 4096) == 0, "listen");
        must(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
    }
};

// A socket that is connected to the address.
inline int connected_to(const sockaddr_in& address) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    must(connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "connect");
    return socket;
}

// Raises the limit of open files to the highest that this process may have.
inline void raise_open_files() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

// The mean proportional set size of at most a hundred of these processes, in bytes.
inline double mean_pss_bytes(const std::vector<pid_t>& processes) {
    const std::size_t step = processes.size() / 100 + 1;
    double sum_kib = 0;
    int count = 0;
    for (std::size_t n = 0; n < processes.size(); n += step) {
        std::ifstream file("/proc/" + std::to_string(processes[n]) + "/smaps_rollup");
        for (std::string line; std::getline(file, line);) {
            if (line.starts_with("Pss:")) {
                sum_kib += std::stod(line.substr(4));
                ++count;
                break;
            }
        }
    }
    return count == 0 ? 0 : sum_kib * 1024 / count;
}
