// One step of a publisher.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/histogram.h"
#include "common/memory.h"
#include "common/messages/from_controller.h"
#include "common/messages/reports.h"
#include "common/pacer.h"
#include "common/time_series.h"
#include "common/transport.h"
#include "common/usage.h"

namespace hydra {

class PublisherStep {
  public:
    PublisherStep(Id publisher, const Configure& command, const Start& start, PublisherTransport& transport,
                  PayloadBlock& payload, Pacing pacing, MemoryLimit& memory);

    // Sends at most one chunk; until when nothing is due (CLOCK_MONOTONIC), 0 if there is more at once.
    std::int64_t work(std::int64_t now_ns);

    // The step's clock at a reading of CLOCK_MONOTONIC.
    [[nodiscard]] std::int64_t step_ns(std::int64_t monotonic) const { return clock_.at_ns(monotonic); }

    // The step's clock, when it is time to tell how far the step is.
    std::optional<std::int64_t> progress_due(std::int64_t now_ns);

    // What was sent in each second and has not been told yet, when it is time to tell it.
    std::vector<SecondCounts> course_due(std::int64_t now_ns);
    // The same at once.
    std::vector<SecondCounts> course() { return course_.take(); }

    // Ends the step, perhaps before its time.
    void stop(std::int64_t stop_at_ns);

    // What was sent, once outstanding answers are in or have been waited for long enough.
    [[nodiscard]] PublisherReport report();

    [[nodiscard]] bool finished() const { return finished_; }
    // Why the step ended before its time, or "".
    [[nodiscard]] const std::string& stopped_early() const { return stopped_early_; }
    [[nodiscard]] std::uint64_t sent() const { return pacer_.sent(); }
    // The step's clock, when all messages of a step that has a number of them were sent and answered; 0
    // before that.
    [[nodiscard]] std::int64_t completed_ns() const { return completed_ns_; }

  private:
    bool exhausted(std::int64_t now_ns);
    [[nodiscard]] SystemObject report_system() const;
    void send_chunk(std::uint64_t count, std::int64_t now_ns);
    [[nodiscard]] bool answers_awaited(std::int64_t now_ns);
    [[nodiscard]] std::int64_t end_ns(std::int64_t last_ack_ns) const;

    Id publisher_;
    std::uint32_t epoch_;
    PublisherTransport& transport_;
    PayloadBlock& payload_;
    MemoryLimit& memory_;
    StepClock clock_;
    Pacer pacer_;
    std::int64_t stop_at_ns_;
    LatencyRecorder lag_;
    UsageMeter usage_;
    bool finished_ = false;
    std::string stopped_early_;
    std::vector<std::uint64_t> times_;        // of the chunk
    std::span<const std::uint64_t> refused_;  // those of the chunk that the library has not taken yet
    std::int64_t blocked_ns_ = 0;
    std::int64_t first_ns_ = 0;
    std::int64_t last_ns_ = 0;
    std::int64_t completed_ns_ = 0;
    TimeSeriesSum course_;
    std::int64_t course_ns_;
    std::int64_t next_course_ns_;
    std::int64_t progress_ns_;
    std::int64_t next_progress_ns_;
    std::int64_t next_look_ns_ = 0;
};

// Leaves at most so many ranges: the last ones become one, and what lies between them is not expected of a
// subscriber any more. Whether there were more.
bool join_beyond(std::vector<Range>& ranges, std::size_t most);

}  // namespace hydra
