// One step of a publisher.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/acceptance.h"
#include "common/clock.h"
#include "common/histogram.h"
#include "common/memory_limit.h"
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

    // Sends at most one chunk; returns until when nothing is due (CLOCK_MONOTONIC), 0 if there is more at
    // once.
    std::int64_t work(std::int64_t now_ns);

    // The step's clock at a reading of CLOCK_MONOTONIC.
    [[nodiscard]] std::int64_t step_ns(std::int64_t monotonic) const { return clock_.at_ns(monotonic); }

    // The time on the step's clock, if it is time to send the progress of the step.
    std::optional<std::int64_t> progress_due(std::int64_t now_ns);

    // The counts of each second that were not sent yet, if it is time to send them.
    std::vector<SecondCounts> time_series_due(std::int64_t now_ns);
    // The counts of each second that were not sent yet.
    std::vector<SecondCounts> time_series() { return time_series_.take(); }

    // Ends the step, perhaps early.
    void stop(std::int64_t stop_at_ns);

    // The report of the step, after outstanding answers have arrived or the time limit for them has passed.
    [[nodiscard]] PublisherReport report();

    [[nodiscard]] bool finished() const { return finished_; }
    // The reason why the step ended early, or "".
    [[nodiscard]] const std::string& stopped_early() const { return stopped_early_; }
    [[nodiscard]] std::uint64_t sent() const { return pacer_.sent(); }
    // When all messages of a step with a limited number were sent and answered, on the step's clock; 0 before
    // that.
    [[nodiscard]] std::int64_t completed_ns() const { return completed_ns_; }

  private:
    bool exhausted(std::int64_t now_ns);
    void look_at_progress(std::int64_t now_ns);
    [[nodiscard]] nlohmann::json acceptance() const;
    [[nodiscard]] SystemObject report_system() const;
    [[nodiscard]] const PublisherTraffic* traffic() const { return traffic_ ? &*traffic_ : nullptr; }
    void send_chunk(std::uint64_t count, std::int64_t now_ns);
    [[nodiscard]] bool answers_awaited(std::int64_t now_ns);
    [[nodiscard]] std::int64_t end_ns(std::int64_t last_ack_ns) const;

    Id publisher_;
    std::uint32_t epoch_;
    PublisherTransport& transport_;
    PayloadBlock& payload_;
    std::optional<PublisherTraffic> traffic_;
    MemoryLimit& memory_;
    StepClock clock_;
    Pacer pacer_;
    std::int64_t stop_at_ns_;
    LatencyRecorder lag_;
    UsageMeter usage_;
    bool finished_ = false;
    std::string stopped_early_;
    std::optional<ProgressWatch> watch_;  // none if messages are due: a publisher that stops misses its rate
    std::vector<std::uint64_t> times_;    // times of the chunk's messages
    std::span<const std::uint64_t> refused_;  // times of the chunk's messages that the library rejected
    std::int64_t blocked_ns_ = 0;
    std::int64_t first_ns_ = 0;
    std::int64_t last_ns_ = 0;
    std::int64_t completed_ns_ = 0;
    TimeSeriesSum time_series_;
    std::int64_t time_series_every_ns_;
    std::int64_t next_time_series_ns_;
    std::int64_t progress_ns_;
    std::int64_t next_progress_ns_;
    std::int64_t next_look_ns_ = 0;
};

// Leaves at most `most` ranges: the last ones become one, and sequences between them are then not expected of
// a subscriber. Returns whether there were more.
bool join_beyond(std::vector<Range>& ranges, std::size_t most);

}  // namespace hydra
