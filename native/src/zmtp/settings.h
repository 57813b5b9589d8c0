// ZMQ's part of `configure` and of a report, as these subscribers have it.
#pragma once

#include <cstdint>

namespace hydra {

// They are the publishers'. A subscriber's own high-water mark is not known here: there is no queue that it
// could be of.
struct ZmtpSettings {
    int sndhwm = 0;
    bool nodrop = false;

    static void describe(auto& it, auto& fields) {
        fields.optional("sndhwm", it.sndhwm);
        fields.optional("nodrop", it.nodrop);
    }
};

// Connections that were lost in a step after they had worked, and those among them for what came over them.
struct ZmtpReport {
    std::uint64_t lost = 0;
    std::uint64_t refused = 0;

    static void describe(auto& it, auto& fields) {
        fields.required("lost_connections", it.lost);
        fields.required("refused_connections", it.refused);
    }
};

}  // namespace hydra
