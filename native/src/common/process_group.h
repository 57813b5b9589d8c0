// The parent of a group: forks the relay and then the clients, a limited number at a time, and replaces
// clients that die. It leaves nothing behind.
#pragma once

#include "common/environment.h"
#include "common/options.h"

namespace hydra {

inline constexpr int kExitRelayDied = 5;

// Runs a group until its clients were dismissed or its lifeline closes; returns the exit code.
int run_group(const Options& options, const Environment& environment);

}  // namespace hydra
