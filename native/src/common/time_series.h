// The course of a step: what happened in each of its seconds, until it is told. Pure: the times are given.
// (As hydra/client/time_series.py and hydra/wire/time_series.py.)
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/histogram.h"
#include "common/messages/from_client.h"

namespace hydra {

// Which second of the step a moment is in; what comes before the start is in the first.
inline std::uint64_t second_of(std::int64_t since_start_ns) {
    return since_start_ns < 0 ? 0 : static_cast<std::uint64_t>(since_start_ns / 1'000'000'000);
}

// What the subscribers of a process have received, and how late.
class ReceivedTimeSeries {
  public:
    // What counts the messages of a batch that was read so long after the start.
    LatencyRecorder& at(std::int64_t since_start_ns);

    // What has not been told yet.
    std::vector<SecondCounts> take();

  private:
    void end_second();

    LatencyRecorder recorder_;
    std::uint64_t second_ = 0;
    std::vector<SecondCounts> told_;
};

// What several have told, added up.
class TimeSeriesSum {
  public:
    void add(const std::vector<SecondCounts>& told);
    void add(std::uint64_t second, std::uint64_t messages) { sums_[second].messages += messages; }

    // All of it, by rising seconds; nothing is left.
    std::vector<SecondCounts> take();

  private:
    struct Sum {
        std::uint64_t messages = 0;
        std::map<std::int64_t, std::int64_t> counts;
        std::int64_t min_us = 0;
        std::int64_t max_us = 0;
    };
    std::map<std::uint64_t, Sum> sums_;
};

// The same in as many messages as it takes.
std::vector<std::vector<SecondCounts>> parts_of(std::vector<SecondCounts> seconds);

}  // namespace hydra
