// A subscriber's lag during a step: the age of its newest message. Pure, time is passed in. (Python:
// hydra/client/subscriber_state.py.)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/messages/parts.h"

namespace hydra {

// Ages within a short time are almost equal, so they are averaged in equal parts of the window. The
// controller, which has the bins of all subscribers, decides whether the lag grows.
class LagBins {
  public:
    // The window is on the step's clock.
    LagBins(std::int64_t start_ns, std::int64_t stop_ns);

    // Adds a batch that was read at `now_ns`, `age_ns` after its newest message was due. Ignored outside the
    // window. An age below 0 counts as 0, one above 1 h as 1 h.
    void add(std::int64_t now_ns, std::int64_t age_ns);

    // The mean of each part (µs, rounded down); none if no batch was read in the part.
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
