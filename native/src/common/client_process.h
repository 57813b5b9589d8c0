// The code of a group's forked processes: the clients of one process, or the relay.
#pragma once

#include <functional>
#include <string>

#include "common/environment.h"
#include "common/messages/parts.h"
#include "common/options.h"

namespace hydra {

inline constexpr int kExitDismissed = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitStranded =
    4;  // the controller could not be reached, or has been silent for too long

// Runs a process with these clients, which connect to their relay's socket at this path; returns its exit
// code. Calls `welcomed` after the relay has welcomed them.
int run_clients(const Options& options, const Environment& environment, const std::string& relay,
                const Ids& ids, std::uint32_t incarnation, const std::function<void()>& welcomed);

// Runs the relay; returns its exit code. It writes the name of its socket to the pipe `place`, reads the
// deaths of clients from `deaths` until the parent closes that, and writes a Kill to `kills` for each client
// to be evicted.
int run_relay(const Options& options, const Environment& environment, int place, int deaths, int kills);

}  // namespace hydra
