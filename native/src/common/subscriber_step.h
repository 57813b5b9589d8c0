// One step of one subscriber. Times are CLOCK_MONOTONIC unless they say otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/batch.h"
#include "common/clock.h"
#include "common/histogram.h"
#include "common/impairments.h"
#include "common/lag_bins.h"
#include "common/ledger.h"
#include "common/messages/from_controller.h"
#include "common/messages/reports.h"
#include "common/time_series.h"
#include "common/transport.h"
#include "common/usage.h"

namespace hydra {

class SubscriberStep {
  public:
    // `latency` is emptied; it outlives the step, because its memory is worth keeping.
    SubscriberStep(const Configure& command, SubscriberTransport& transport, LatencyRecorder& latency);

    // Takes at most one batch. Whether there may be more to take, now or when a slow reader may go on. What
    // comes after the start is counted in `course` as well, if the step has one.
    bool take(Batch& batch, ReceivedTimeSeries& course);

    // How many messages may be taken at once now: 0 while a slow reader has to wait.
    [[nodiscard]] std::size_t allowance(std::int64_t now_ns) const;

    // Whether it is time to reconnect; `reconnect` does it.
    [[nodiscard]] bool reconnect_due(std::int64_t now_ns) const;
    void reconnect();

    // What its spells ask for now, once for each of them.
    Impairments::Change spells(std::int64_t now_ns);
    void leave();
    void come_back();
    [[nodiscard]] bool gone() const { return spells_.gone(); }

    // Its connection is broken: nothing more is taken, and the drain ends as soon as it begins.
    void fail() { failed_ = true; }
    [[nodiscard]] bool failed() const { return failed_; }

    // When something is to be done without a message having come; kNeverNs if nothing.
    [[nodiscard]] std::int64_t next_ns(std::int64_t now_ns) const;

    // True once, when a probe of every publisher has come.
    bool newly_ready();

    // The step's clock, when it is time to tell how far the step is.
    std::optional<std::int64_t> progress_due(std::int64_t now_ns);

    void start(const Start& command);
    void stop(std::int64_t stop_at_ns);
    // TransportError: the system's part of the command is none; it is not obeyed. Whether it had no
    // connection, and has one again.
    bool finish(const Finish& command, std::int64_t now_ns);

    // Whether everything expected is here, nothing can follow or nothing came for a while, or it has taken
    // too long.
    bool drained(std::int64_t now_ns);

    // The account of the step; only once it is drained.
    [[nodiscard]] SubscriberReport report();

    [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
    [[nodiscard]] bool proven() const { return proven_; }
    [[nodiscard]] std::uint64_t messages() const { return ledger_.messages(); }

  private:
    [[nodiscard]] std::int64_t step_ns(std::int64_t monotonic) const { return clock_->at_ns(monotonic); }
    [[nodiscard]] std::int64_t reconnect_at_ns() const;  // the step's clock
    [[nodiscard]] bool in_progress() const { return clock_.has_value() && !finish_.has_value(); }
    void end_absence(std::int64_t at_ns);
    [[nodiscard]] std::int64_t quiet_ns() const;

    std::uint32_t epoch_;
    bool paced_;
    bool member_;  // of a group, whose members share the messages
    std::optional<double> receive_rate_;
    std::optional<double> reconnect_rate_;
    Impairments spells_;
    SubscriberTransport& transport_;
    Ledger ledger_;
    LatencyRecorder& latency_;
    std::optional<LagBins> lag_;  // none at "max"
    UsageMeter usage_;
    bool ready_;
    bool has_course_;
    bool proven_ = false;
    bool failed_ = false;
    std::optional<StepClock> clock_;    // none before the start
    std::int64_t start_ns_ = kNeverNs;  // these on the step's clock
    std::int64_t stop_ns_ = kNeverNs;
    std::int64_t absent_since_ns_ = 0;
    std::int64_t next_progress_ns_ = 0;
    std::int64_t progress_ns_;
    std::int64_t heard_ns_ = 0;  // the last batch, or finish
    std::int64_t first_ns_ = 0;  // the first batch
    std::int64_t batch_ns_ = 0;  // the last batch
    std::int64_t longest_gap_ns_ = 0;
    std::int64_t deadline_ns_ = 0;
    std::uint64_t batches_ = 0;
    std::uint64_t first_batch_ = 0;
    std::uint64_t reconnects_ = 0;
    std::vector<Interval> absent_;
    std::optional<Finish> finish_;
    std::optional<DrainEnd> ended_;
};

// Takes in the next interval. A list that is full joins it to its last one, so that what was present between
// the two counts as absent, and nothing absent is left out.
void add_absence(std::vector<Interval>& absent, const Interval& next);

}  // namespace hydra
