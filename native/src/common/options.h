// The command line of a group.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/messages/parts.h"
#include "common/system.h"

namespace hydra {

enum class Pacing {
    smooth,
    bursty,  // each second's messages at its start, like a program that paces by whole seconds
};

// The options of all systems; a system stores its own.
struct Options {
    Kind kind;
    std::string group;
    Id first_id = 0;
    std::uint32_t count = 1;
    std::uint32_t fork_window = 128;
    std::uint32_t respawns = 3;
    std::uint32_t clients_per_process = 1;
    Pacing pacing = Pacing::smooth;
};

// Invalid arguments, as one line for the user.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Systems = std::vector<std::unique_ptr<System>>;

// Also sets the options of the chosen system. Throws UsageError; ends the program with 0 after --help.
Options parse_options(int argc, const char* const* argv, const Systems& systems);

}  // namespace hydra
