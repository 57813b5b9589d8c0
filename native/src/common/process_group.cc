#include "common/process_group.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
#include <zmq.hpp>

#include "common/client_process.h"
#include "common/inner_socket.h"
#include "common/linux_process.h"
#include "common/relay.h"

namespace hydra {
namespace {

int exit_status(int wait_status) {
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -WTERMSIG(wait_status);
}

// The clients of one process, including those that replace them.
struct ProcessSlot {
    Id first_id;
    std::uint32_t count;
    std::uint32_t forks = 0;
    pid_t pid = 0;
    bool unwelcomed = false;

    [[nodiscard]] Ids ids() const {
        Ids them(count);
        std::iota(them.begin(), them.end(), first_id);
        return them;
    }
};

// Has one thread and no socket, so it can fork at any time.
class Parent {
  public:
    Parent(const Options& options, const Environment& environment);
    int run();

  private:
    void fork_waiting();
    void fork_clients(std::size_t slot);
    pid_t fork_child(const std::function<int()>& child);
    int client_process(std::size_t slot);
    int relay_process();
    bool open_socket();
    int relay_ended(int status);

    void take_welcomes();
    void take_signals();
    void kill_named_clients();
    std::optional<int> reap();
    void clients_ended(std::size_t slot, int status);
    void kill_all();
    int end();
    [[nodiscard]] std::size_t slot_of(Id id) const {
        return (id - options_.first_id) / options_.clients_per_process;
    }

    const Options& options_;
    const Environment& environment_;
    // A context without a socket has no thread. The parent never uses it: libzmq prepares its libraries for
    // the first context of a process, and PGM then searches a hundred places for a library of the name
    // service. The children need not do that again.
    zmq::context_t prepared_;
    Pipe welcomes_;  // indexes of slots, from welcomed clients
    Pipe place_;     // the path of the relay's socket
    Pipe deaths_;    // Death, to the relay
    Pipe kills_;     // Kill, from the relay
    sigset_t signals_{};
    int signal_fd_ = -1;
    std::vector<ProcessSlot> slots_;
    std::deque<std::size_t> waiting_;
    std::unordered_map<pid_t, std::size_t> running_;
    std::uint64_t unwelcomed_ = 0;  // number of clients without a welcome
    pid_t relay_ = 0;
    std::string relay_path_;  // the path of its socket, for the clients
    bool terminated_ = false;
    bool stranded_ = false;
};

Parent::Parent(const Options& options, const Environment& environment)
    : options_(options), environment_(environment) {
    for (std::uint32_t taken = 0; taken < options.count;) {
        const std::uint32_t count = std::min(options.clients_per_process, options.count - taken);
        waiting_.push_back(slots_.size());
        slots_.push_back({.first_id = options.first_id + taken, .count = count});
        taken += count;
    }
}

int Parent::run() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGCHLD);
    sigaddset(&signals_, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals_, nullptr);
    signal_fd_ = signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
    std::signal(SIGINT, SIG_IGN);   // the controller handles Ctrl-C
    std::signal(SIGPIPE, SIG_IGN);  // the parent notices a relay's death as a child's end
    fcntl(welcomes_.read_end(), F_SETFL, O_NONBLOCK);
    relay_ = fork_child([this] { return relay_process(); });
    deaths_.close_read();
    kills_.close_write();
    place_.close_write();
    if (!open_socket()) {
        int status = 0;
        waitpid(relay_, &status, 0);
        return relay_ended(exit_status(status));
    }
    std::array<pollfd, 4> waits{{{welcomes_.read_end(), POLLIN, 0},
                                 {signal_fd_, POLLIN, 0},
                                 {kills_.read_end(), POLLIN, 0},
                                 {environment_.lifeline.value_or(-1), POLLIN, 0}}};
    while (true) {
        fork_waiting();
        if (running_.empty()) {
            return end();
        }
        poll(waits.data(), waits.size(), -1);
        if (waits[0].revents != 0) {
            take_welcomes();
        }
        if (waits[1].revents != 0) {
            take_signals();
        }
        if (waits[2].revents != 0) {
            kill_named_clients();
        }
        if (terminated_ || waits[3].revents != 0) {
            kill_all();
            return kExitDismissed;
        }
        if (const auto code = reap()) {
            kill_all();
            return *code;
        }
    }
}

// --- forking ----------------------------------------------------------------------------------------------

// A process with more clients than the window is forked alone.
void Parent::fork_waiting() {
    while (!waiting_.empty()) {
        const std::size_t slot = waiting_.front();
        if (unwelcomed_ != 0 && unwelcomed_ + slots_[slot].count > options_.fork_window) {
            return;
        }
        waiting_.pop_front();
        fork_clients(slot);
    }
}

void Parent::fork_clients(std::size_t index) {
    ProcessSlot& slot = slots_[index];
    ++slot.forks;
    slot.pid = fork_child([this, index] { return client_process(index); });
    slot.unwelcomed = true;
    unwelcomed_ += slot.count;
    running_[slot.pid] = index;
}

pid_t Parent::fork_child(const std::function<int()>& child) {
    if (thread_count() != 1) {
        throw std::logic_error("a group's parent must have one thread when it forks");
    }
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) {
        throw std::system_error(errno, std::generic_category(), "fork");
    }
    if (pid > 0) {
        return pid;
    }
    int code = kExitFailed;
    try {
        die_with_parent(parent);
        sigprocmask(SIG_UNBLOCK, &signals_, nullptr);
        close(signal_fd_);
        welcomes_.close_read();
        code = child();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "hydra-client: %s\n", e.what());
    }
    // Never return to the parent's code, and run none of its destructors.
    std::fflush(nullptr);
    _exit(code);
}

int Parent::client_process(std::size_t index) {
    deaths_.close_write();
    kills_.close_read();
    const ProcessSlot& slot = slots_[index];
    return run_clients(options_, environment_, relay_path_, slot.ids(), slot.forks - 1, [this, index] {
        static_cast<void>(!write(welcomes_.write_end(), &index, sizeof index));
        welcomes_.close_write();
    });
}

int Parent::relay_process() {
    deaths_.close_write();
    kills_.close_read();
    welcomes_.close_write();
    place_.close_read();
    return run_relay(options_, environment_, place_.write_end(), deaths_.read_end(), kills_.write_end());
}

// Opens the relay's socket as a descriptor that every client inherits, and removes its name: nothing is left
// on the disk, and no other process can connect. False: the relay has ended.
bool Parent::open_socket() {
    std::array<char, 128> name{};
    const ssize_t bytes = read(place_.read_end(), name.data(), name.size());
    if (bytes <= 0) {
        return false;
    }
    relay_path_ = inner_path(open_place({name.data(), static_cast<std::size_t>(bytes)}));
    return true;
}

// --- events --------------------------------------------------------------------------------------------

void Parent::take_welcomes() {
    // A client's write is never torn, and a read ends between two writes: 4096 is a multiple of their size.
    std::array<std::size_t, 4096 / sizeof(std::size_t)> slots{};
    ssize_t bytes = 0;
    while ((bytes = read(welcomes_.read_end(), slots.data(), sizeof slots)) > 0) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(bytes) / sizeof slots[0]; ++i) {
            ProcessSlot& slot = slots_.at(slots[i]);
            if (slot.unwelcomed) {
                slot.unwelcomed = false;
                unwelcomed_ -= slot.count;
            }
        }
    }
}

void Parent::take_signals() {
    signalfd_siginfo signal{};
    while (read(signal_fd_, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
        terminated_ = terminated_ || signal.ssi_signo == SIGTERM;
    }
}

// Kills the clients that the relay named: they count as dead and are replaced.
void Parent::kill_named_clients() {
    std::array<Kill, 512> kills{};
    const ssize_t bytes = read(kills_.read_end(), kills.data(), sizeof kills);
    for (std::size_t i = 0; bytes > 0 && i < static_cast<std::size_t>(bytes) / sizeof(Kill); ++i) {
        const ProcessSlot& slot = slots_.at(slot_of(kills[i].id));
        if (slot.pid != 0 && slot.forks - 1 <= kills[i].incarnation) {
            kill(slot.pid, SIGKILL);
        }
    }
}

// Records every child that ended; returns the exit code if it was the relay.
std::optional<int> Parent::reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == relay_) {
            return relay_ended(exit_status(status));
        }
        const auto it = running_.find(pid);
        const std::size_t slot = it->second;
        running_.erase(it);
        clients_ended(slot, exit_status(status));
    }
    return std::nullopt;
}

// The group's exit code: that of the relay, if it has a meaning.
int Parent::relay_ended(int status) {
    return status == kExitStranded || status == kExitUsage ? status : kExitRelayDied;
}

void Parent::clients_ended(std::size_t index, int status) {
    ProcessSlot& slot = slots_[index];
    const auto pid = static_cast<std::uint32_t>(slot.pid);
    slot.pid = 0;
    if (slot.unwelcomed) {
        slot.unwelcomed = false;
        unwelcomed_ -= slot.count;
    }
    stranded_ = stranded_ || status == kExitStranded;
    const bool replaced =
        status != kExitDismissed && status != kExitStranded && slot.forks <= options_.respawns;
    Death death{};
    death.first_id = slot.first_id;
    death.count = slot.count;
    death.incarnation = slot.forks - 1;
    death.pid = pid;
    death.status = status;
    death.replaced = replaced;
    static_cast<void>(!write(deaths_.write_end(), &death, sizeof death));
    if (replaced) {
        waiting_.push_back(index);
    }
}

void Parent::kill_all() {
    for (const auto& [pid, slot] : running_) {
        kill(pid, SIGKILL);
    }
    kill(relay_, SIGKILL);
}

// All clients have ended: closing the pipe makes the relay send what it has and end.
int Parent::end() {
    deaths_.close_write();
    waitpid(relay_, nullptr, 0);
    return stranded_ ? kExitStranded : kExitDismissed;
}

}  // namespace

int run_group(const Options& options, const Environment& environment) {
    if (environment.lifeline) {
        die_with_parent(getppid());
    }
    if (options.kind.role == Role::subscriber) {
        // An arena for each of libzmq's threads would cost each of thousands of subscribers its own pages.
        mallopt(M_ARENA_MAX, 1);
    }
    return Parent(options, environment).run();
}

}  // namespace hydra
