// The command line of a group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/messages.h"

namespace hydra {

enum class Pacing {
    smooth,
    bursty,  // each second's messages at its start, as a program that paces by whole seconds sends them
};

// The data plane of raw ZMQ; 0 leaves a size to the kernel.
struct DataPlane {
    int io_threads = 1;
    int sndbuf_bytes = 0;
    int rcvbuf_bytes = 0;
    bool ipc = false;
    bool secure = false;
};

struct Options {
    std::string kind;
    std::string group;
    Id first_id = 0;
    std::uint32_t count = 1;
    std::uint32_t fork_window = 128;
    std::uint32_t respawns = 3;
    std::uint32_t clients_per_process = 1;
    Pacing pacing = Pacing::smooth;
    DataPlane data;
};

// Ends the program with 2 and one line on stderr where the arguments make no sense, with 0 after --help.
Options parse_options(int argc, char** argv, const std::vector<std::string>& kinds);

}  // namespace hydra
