// What the TCP connections of a group's processes wait for, from the kernel's counters: sock_diag(7).
// (Python: hydra/client/process_sampler.py.)
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

// A TCP connection: bytes sent, time with data in flight, and the parts of it that the reader or buffer
// limited.
struct TcpConnection {
    std::uint64_t inode = 0;
    std::uint64_t unread_bytes = 0;
    std::uint64_t unsent_bytes = 0;
    std::uint64_t sent_bytes = 0;
    std::uint64_t busy_us = 0;
    std::uint64_t reader_us = 0;
    std::uint64_t buffer_us = 0;
};

// By the kernel's cookie.
using TcpConnections = std::map<std::uint64_t, TcpConnection>;

// The established connections of this network namespace; none if the kernel does not report them.
std::optional<TcpConnections> established();

// The sums over the connections, from one reading to the next.
Connections between(const TcpConnections& before, const TcpConnections& now, std::int64_t elapsed_ns);

class TcpSampler {
  public:
    // The connections of these processes since the previous reading; none the first time. If another reading
    // would take more than its share of a core, the result is that of the last reading.
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
