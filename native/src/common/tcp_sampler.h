// What the TCP connections of a group's processes wait for, as the kernel counts it for each of them:
// sock_diag(7). hydra/client/process_sampler.py is the same in Python.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/clock.h"
#include "common/messages/hosts.h"

namespace hydra {

// A connection as it stands: what it has sent so far, for how long data was in flight, and why for no less.
struct TcpConnection {
    std::uint64_t inode = 0;
    std::uint64_t unread_bytes = 0;
    std::uint64_t unsent_bytes = 0;
    std::uint64_t sent_bytes = 0;
    std::uint64_t busy_us = 0;
    std::uint64_t reader_us = 0;
    std::uint64_t buffer_us = 0;
};

// By the kernel's name for them.
using TcpConnections = std::map<std::uint64_t, TcpConnection>;

// The established ones of this network namespace; none where the kernel does not tell.
std::optional<TcpConnections> established();

// What they did from one reading to the next.
Connections between(const TcpConnections& before, const TcpConnections& now, std::int64_t elapsed_ns);

class TcpSampler {
  public:
    // Those of these processes since they were read before; none the first time. While reading them again
    // would take more than its share of a core, it says what it said before.
    [[nodiscard]] std::optional<Connections> read(const std::vector<pid_t>& processes);

  private:
    [[nodiscard]] std::optional<Connections> since_before(const std::vector<pid_t>& processes,
                                                          std::int64_t now_ns);
    void find_own(const TcpConnections& all, const std::vector<pid_t>& processes);

    std::optional<Connections> told_;
    TcpConnections before_;
    std::map<std::uint64_t, bool> known_;  // whether the socket of this inode is the group's
    std::int64_t before_ns_ = kNeverNs;
    std::int64_t due_ns_ = 0;
};

}  // namespace hydra
