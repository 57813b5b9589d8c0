// The time series of a step: counts and latency of each second, until they are sent. Pure: the times are
// given. (Python: hydra/client/time_series.py and hydra/wire/time_series.py.)
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/histogram.h"
#include "common/messages/from_client.h"

namespace hydra {

// The second of the step at this time; a time before the start is in the first.
inline std::uint64_t second_of(std::int64_t since_start_ns) {
    return since_start_ns < 0 ? 0 : static_cast<std::uint64_t>(since_start_ns / 1'000'000'000);
}

// The number and latency of messages that the subscribers of a process have received in each second.
class ReceivedTimeSeries {
  public:
    // The recorder for a batch that was read this long after the start.
    LatencyRecorder& at(std::int64_t since_start_ns);

    // The counts that were not sent to the controller yet.
    std::vector<SecondCounts> take();

  private:
    void end_second();

    LatencyRecorder recorder_;
    std::uint64_t second_ = 0;
    std::vector<SecondCounts> complete_;
};

// The sum of the time series of several clients.
class TimeSeriesSum {
  public:
    void add(const std::vector<SecondCounts>& seconds);
    void add(std::uint64_t second, std::uint64_t messages) { sums_[second].messages += messages; }

    // All seconds in rising order; the sum is empty afterwards.
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

// The same seconds, split into as many lists as messages are needed.
std::vector<std::vector<SecondCounts>> parts_of(std::vector<SecondCounts> seconds);

}  // namespace hydra
