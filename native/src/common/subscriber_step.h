// One step of one subscriber. Times are on CLOCK_MONOTONIC unless their comment states another clock.
#pragma once

#include <cstdint>
#include <memory>
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
#include "common/read_limit.h"
#include "common/time_series.h"
#include "common/topic_account.h"
#include "common/transport.h"
#include "common/usage.h"

namespace hydra {

class SubscriberStep {
  public:
    // `latency` is emptied; it outlives the step, so its memory can be used again.
    SubscriberStep(const Configure& command, SubscriberTransport& transport, LatencyRecorder& latency,
                   std::unique_ptr<TopicAccount> topics = nullptr);

    // Takes at most one batch. Returns whether there may be more to take, now or when a slow reader may read
    // again. Messages after the start are also counted in `time_series`, if the step has a time series.
    bool take(Batch& batch, ReceivedTimeSeries& time_series);

    // The number of messages that may be taken now: 0 while a slow reader has to wait.
    [[nodiscard]] std::size_t allowance(std::int64_t now_ns) const;

    // Whether it is time to reconnect; `reconnect` does it.
    [[nodiscard]] bool reconnect_due(std::int64_t now_ns) const;
    void reconnect();

    // The change that the impairments require now; each change is returned once.
    Impairments::Change impairment_change(std::int64_t now_ns);
    void leave();
    void come_back();
    [[nodiscard]] bool absent() const { return impairments_.absent(); }

    // From now on the step reads from this transport.
    void moves_to(SubscriberTransport& transport) { transport_ = &transport; }
    [[nodiscard]] bool draining() const { return finish_.has_value(); }

    // The connection is broken: nothing more is taken, and the drain ends as soon as it begins.
    void fail() { failed_ = true; }
    [[nodiscard]] bool failed() const { return failed_; }

    // When something is due although no message arrives; kNeverNs if nothing.
    [[nodiscard]] std::int64_t next_ns(std::int64_t now_ns) const;

    // True once, after a probe of every publisher was received.
    bool newly_ready();

    // The time on the step's clock, if it is time to send the progress of the step.
    std::optional<std::int64_t> progress_due(std::int64_t now_ns);

    void start(const Start& command);
    void stop(std::int64_t stop_at_ns);
    // TransportError: the system's part of the command is invalid; the command has no effect. Returns whether
    // a subscriber without a connection has one again.
    bool finish(const Finish& command, std::int64_t now_ns);

    // Whether the drain has ended: all is received, nothing can follow, it was quiet, or the time is over.
    bool drained(std::int64_t now_ns);

    // The report of the step; only after drained() is true.
    [[nodiscard]] SubscriberReport report();

    [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
    [[nodiscard]] bool proven() const { return proven_; }
    [[nodiscard]] std::uint64_t messages() const { return ledger_.messages(); }

  private:
    [[nodiscard]] std::int64_t step_ns(std::int64_t monotonic) const { return clock_->at_ns(monotonic); }
    [[nodiscard]] std::int64_t reconnect_at_ns() const;  // on the step's clock
    [[nodiscard]] bool in_progress() const { return clock_.has_value() && !finish_.has_value(); }
    void note_read(std::int64_t now_ns, std::size_t messages);
    void end_absence(std::int64_t at_ns);
    [[nodiscard]] std::int64_t quiet_ns() const;

    std::uint32_t epoch_;
    bool paced_;
    bool member_;  // of a consumer group, whose members share the messages
    std::optional<double> receive_rate_;
    std::optional<double> reconnect_rate_;
    Impairments impairments_;
    std::optional<ReadLimit> limit_;  // of a slow reader, from the start on
    SubscriberTransport* transport_;
    Ledger ledger_;
    std::unique_ptr<TopicAccount> topics_;  // null: one topic and no keys
    LatencyRecorder& latency_;
    std::optional<LagBins> lag_;  // none at "max"
    UsageMeter usage_;
    bool ready_;
    bool has_time_series_;
    bool proven_ = false;
    bool failed_ = false;
    std::optional<StepClock> clock_;    // none before the start
    std::int64_t start_ns_ = kNeverNs;  // this and the next on the step's clock
    std::int64_t stop_ns_ = kNeverNs;
    std::int64_t absent_since_ns_ = 0;
    std::int64_t next_progress_ns_ = 0;
    std::int64_t progress_ns_;
    std::int64_t received_ns_ = 0;  // time of the last batch, or of finish
    std::int64_t first_ns_ = 0;     // time of the first batch
    std::int64_t batch_ns_ = 0;     // time of the last batch
    std::int64_t longest_gap_ns_ = 0;
    std::int64_t deadline_ns_ = 0;
    std::uint64_t batches_ = 0;
    std::uint64_t first_batch_ = 0;
    std::uint64_t reconnects_ = 0;
    std::vector<Interval> absent_;
    std::optional<Finish> finish_;
    std::optional<DrainEnd> ended_;
};

// Adds an interval. If the list is full, the last interval is extended to it: the time between the two then
// counts as absence, and no absence is left out.
void add_absence(std::vector<Interval>& absent, const Interval& next);

}  // namespace hydra
