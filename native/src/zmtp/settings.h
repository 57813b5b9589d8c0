// ZMQ's part of `configure` and of a report, for these subscribers.
#pragma once

#include <cstdint>

namespace hydra {

// Settings of publishers. A subscriber's high-water mark is unknown here: these subscribers have no queue.
struct ZmtpSettings {
    int sndhwm = 0;
    bool nodrop = false;

    static void describe(auto& it, auto& fields) {
        fields.optional("sndhwm", it.sndhwm);
        fields.optional("nodrop", it.nodrop);
    }
};

// Connections that were lost in a step after they had worked, and those among them that were closed because
// of invalid data.
struct ZmtpReport {
    std::uint64_t lost = 0;
    std::uint64_t refused = 0;

    static void describe(auto& it, auto& fields) {
        fields.required("lost_connections", it.lost);
        fields.required("refused_connections", it.refused);
    }
};

}  // namespace hydra
