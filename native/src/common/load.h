// A load over time: a rate that changes linearly between points, and when each of its messages is due. Pure.
//
// The formulas and the order of their operations are those of hydra/wire/load_schedule.py, so due times
// are the same in every language; this file is compiled without contraction of products and sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/messages/from_controller.h"

namespace hydra {

class LoadSchedule {
  public:
    // The due time of a message that the load does not reach.
    static constexpr std::int64_t kNeverDueNs = std::int64_t{1} << 62;

    LoadSchedule() = default;  // empty: the rate does not change
    explicit LoadSchedule(const std::vector<LoadPoint>& points);

    [[nodiscard]] bool empty() const { return segments_.empty(); }

    // When message n is due, ns since the start.
    [[nodiscard]] std::int64_t due_ns(std::uint64_t n) const;

    // The number of messages that are due at most this long after the start.
    [[nodiscard]] std::uint64_t count_by(std::int64_t elapsed_ns) const;

  private:
    struct Segment {
        double begin_s;
        double length_s;
        double rate;
        double slope;
        double before;  // messages that are due before the segment
        double end;     // messages that are due at its end
    };
    std::vector<Segment> segments_;
};

// The reason why these points are no valid load, or "".
std::string no_load(const std::vector<LoadPoint>& points);

}  // namespace hydra
