// The parent of a group: forks the clients, a window at a time, and the warden; replaces who dies; leaves
// nothing behind.
#pragma once

#include "common/environment.h"
#include "common/options.h"

namespace hydra {

inline constexpr int kExitUsage = 2;
inline constexpr int kExitWardenDied = 5;

// Runs a group until its clients have been dismissed or its lifeline closes; returns the exit code.
int run_group(const Options& options, const Environment& environment);

}  // namespace hydra
