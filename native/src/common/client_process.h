// What runs in the forked processes of a group: the clients of one process, or the relay.
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

// The life of a process with these clients, which dial their relay's socket by this path; returns its exit
// code. Calls `welcomed` when they have been.
int run_clients(const Options& options, const Environment& environment, const std::string& relay,
                const Ids& ids, std::uint32_t incarnation, const std::function<void()>& welcomed);

// The life of the relay; returns its exit code. It writes the name of its socket to the pipe `doors`, reports
// the deaths that the parent writes to `deaths` until that closes, and writes a Kill for each client that it
// was told to evict to `kills`.
int run_relay(const Options& options, const Environment& environment, int doors, int deaths, int kills);

}  // namespace hydra
