// What runs in the forked processes of a group: the clients of one process, or the warden.
#pragma once

#include <functional>

#include "common/environment.h"
#include "common/messages/parts.h"
#include "common/options.h"

namespace hydra {

inline constexpr int kExitDismissed = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitStranded =
    4;  // the controller could not be reached, or has been silent for too long

// The life of a process with these clients; returns its exit code. Calls `welcomed` when the controller has
// answered.
int run_clients(const Options& options, const Environment& environment, const Ids& ids,
                std::uint32_t incarnation, const std::function<void()>& welcomed);

// The life of the warden: reports the deaths that the parent writes to one pipe until that closes, and writes
// a Kill for each client that it was told to end to the other.
int run_warden(const Options& options, const Environment& environment, int deaths, int kills);

}  // namespace hydra
