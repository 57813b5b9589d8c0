// How far a subscriber is behind in the course of a step: the age of its newest message. Pure, time is passed
// in. (As hydra/client/subscriber_state.py.)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/messages/parts.h"

namespace hydra {

// Ages within a short time are all alike, so they are averaged in equal parts of the window. Whether the lag
// grows is judged by whoever has the bins of all subscribers.
class LagBins {
  public:
    // The window on the step's clock.
    LagBins(std::int64_t start_ns, std::int64_t stop_ns);

    // A batch was read at `now_ns`; its newest message was due `age_ns` before. Ignored outside the window.
    // An age below 0 counts as 0, one above 1 h as 1 h.
    void add(std::int64_t now_ns, std::int64_t age_ns);

    // The means (µs, rounded down), one of each part; none where no batch was read.
    [[nodiscard]] std::vector<std::optional<std::uint64_t>> means_us() const;

  private:
    struct Part {
        std::uint64_t count = 0;
        std::uint64_t sum_us = 0;
    };

    std::int64_t start_ns_;
    std::int64_t part_ns_;
    std::array<Part, kLagBins> parts_{};
};

}  // namespace hydra
