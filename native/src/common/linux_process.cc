#include "common/linux_process.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace hydra {

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
