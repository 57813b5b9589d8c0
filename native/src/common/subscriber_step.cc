#include "common/subscriber_step.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace hydra {
namespace {

// How often a drain asks the server that has more messages: the end may come without a message.
constexpr std::int64_t kUndrainedNs = 100 * kMillisecondNs;
// Quiet means a time without messages that is several times the longest interval between two batches: on a
// host with thousands of connections, a subscriber waits that long for its turn.
constexpr std::int64_t kQuietGaps = 4;

}  // namespace

SubscriberStep::SubscriberStep(const Configure& command, SubscriberTransport& transport,
                               LatencyRecorder& latency, std::unique_ptr<TopicAccount> topics)
    : epoch_(command.epoch),
      paced_(command.settings.rate.has_value()),
      member_(!command.group.empty()),
      receive_rate_(command.settings.receive_rate),
      reconnect_rate_(command.settings.reconnect_rate),
      impairments_(command.spells),
      transport_(&transport),
      ledger_(command.epoch, command.publishers),
      topics_(std::move(topics)),
      latency_(latency),
      ready_(!command.probe),
      has_time_series_(command.course_s > 0),
      progress_ns_(to_ns(command.progress_s)) {
    latency_.reset();
}

bool SubscriberStep::take(Batch& batch, ReceivedTimeSeries& time_series) {
    const bool more = transport_->receive(batch);
    if (batch.runs().empty()) {
        return more;
    }
    const std::int64_t monotonic = monotonic_ns();
    // If the publishers started first, data arrives before the start command, which brings the step's clock.
    const std::int64_t now_ns = clock_ ? step_ns(monotonic) : 0;
    LatencyRecorder* const also = clock_ && has_time_series_ ? &time_series.at(now_ns - start_ns_) : nullptr;
    const Batch& own = topics_ ? topics_->enter(batch, now_ns, clock_.has_value()) : batch;
    const std::size_t count = ledger_.record(own, now_ns, stop_ns_, clock_ ? &latency_ : nullptr, also);
    if (count == 0) {
        return more;
    }
    if (clock_) {
        note_read(now_ns, count);
    }
    if (batches_ > 0) {
        longest_gap_ns_ = std::max(longest_gap_ns_, monotonic - batch_ns_);
    }
    received_ns_ = batch_ns_ = monotonic;
    if (lag_) {
        lag_->add(now_ns, now_ns - static_cast<std::int64_t>(ledger_.newest_ns()));
    }
    if (absent_since_ns_ != 0) {
        end_absence(now_ns);
    }
    if (batches_++ == 0) {
        first_batch_ = count;
        first_ns_ = monotonic;
    }
    return more;
}

// What a slow reader has read; after `finish` it has no limit.
void SubscriberStep::note_read(std::int64_t now_ns, std::size_t messages) {
    if (limit_) {
        limit_->read(now_ns, messages);
    }
    impairments_.read(now_ns - start_ns_, messages);
}

std::size_t SubscriberStep::allowance(std::int64_t now_ns) const {
    if (!impairments_.empty() && in_progress()) {
        return impairments_.allowance(step_ns(now_ns) - start_ns_, kBatchLimit);
    }
    if (!limit_ || !in_progress()) {
        return kBatchLimit;
    }
    return std::min<std::uint64_t>(limit_->allowance(step_ns(now_ns)), kBatchLimit);
}

std::int64_t SubscriberStep::reconnect_at_ns() const {
    return start_ns_ +
           static_cast<std::int64_t>(static_cast<double>(reconnects_ + 1) / *reconnect_rate_ * 1e9);
}

bool SubscriberStep::reconnect_due(std::int64_t now_ns) const {
    if (!reconnect_rate_ || failed_ || !in_progress()) {
        return false;
    }
    const std::int64_t due_ns = reconnect_at_ns();
    return due_ns <= step_ns(now_ns) && step_ns(now_ns) < stop_ns_;
}

Impairments::Change SubscriberStep::impairment_change(std::int64_t now_ns) {
    if (impairments_.empty() || failed_ || !in_progress()) {
        return Impairments::Change::none;
    }
    return impairments_.at(step_ns(now_ns) - start_ns_);
}

void SubscriberStep::leave() {
    if (absent_since_ns_ == 0) {
        absent_since_ns_ = step_ns(monotonic_ns());
    }
    transport_->leave();
}

void SubscriberStep::come_back() {
    transport_->reconnect();
    ++reconnects_;
}

void SubscriberStep::reconnect() {
    if (absent_since_ns_ == 0) {
        absent_since_ns_ = step_ns(monotonic_ns());
    }
    transport_->reconnect();
    ++reconnects_;
}

// The absence of a reconnecting client ends when data flows again: then its subscription has taken effect.
void SubscriberStep::end_absence(std::int64_t at_ns) {
    add_absence(absent_, {absent_since_ns_, std::max(at_ns, absent_since_ns_)});
    absent_since_ns_ = 0;
}

void add_absence(std::vector<Interval>& absent, const Interval& next) {
    if (absent.size() < kMaxAbsent) {
        absent.push_back(next);
    } else {
        absent.back().end_ns = next.end_ns;
    }
}

std::int64_t SubscriberStep::next_ns(std::int64_t now_ns) const {
    if (finish_) {
        if (ended_) {
            return kNeverNs;
        }
        const std::int64_t quiet_at_ns = received_ns_ + quiet_ns() + 1;
        return std::min(deadline_ns_ + 1, quiet_at_ns > now_ns ? quiet_at_ns : now_ns + kUndrainedNs);
    }
    if (!clock_) {
        return kNeverNs;
    }
    std::int64_t next = kNeverNs;  // the step's clock
    if (progress_ns_ > 0) {
        next = next_progress_ns_;
    }
    if (reconnect_rate_ && !failed_ && reconnect_at_ns() < stop_ns_ && step_ns(now_ns) < stop_ns_) {
        next = std::min(next, reconnect_at_ns());
    }
    if (!impairments_.empty() && !failed_) {
        const std::int64_t since_ns = step_ns(now_ns) - start_ns_;
        const std::int64_t impairment_ns =
            impairments_.due(since_ns) ? since_ns : impairments_.next_ns(since_ns);
        next = std::min(next, impairment_ns == kNeverNs ? kNeverNs : start_ns_ + impairment_ns);
    } else if (limit_ && allowance(now_ns) == 0) {
        next = std::min(next, limit_->next_ns(step_ns(now_ns)));
    }
    return next == kNeverNs ? kNeverNs : clock_->monotonic_of(next);
}

bool SubscriberStep::newly_ready() {
    if (ready_ || !ledger_.proven()) {
        return false;
    }
    return ready_ = proven_ = true;
}

std::optional<std::int64_t> SubscriberStep::progress_due(std::int64_t now_ns) {
    if (progress_ns_ == 0 || !clock_ || step_ns(now_ns) < next_progress_ns_) {
        return std::nullopt;
    }
    // (The window of a subscriber that reads stored messages continues after `finish`.)
    if (finish_ && step_ns(now_ns) >= stop_ns_) {
        return std::nullopt;
    }
    next_progress_ns_ = step_ns(now_ns) + progress_ns_;
    return step_ns(now_ns);
}

void SubscriberStep::start(const Start& command) {
    if (clock_) {
        return;
    }
    clock_.emplace(command.clock);
    start_ns_ = command.start_at_ns;
    stop_ns_ = command.stop_at_ns;
    next_progress_ns_ = command.start_at_ns + progress_ns_;
    if (receive_rate_) {
        limit_.emplace(*receive_rate_, start_ns_);
    }
    usage_ = UsageMeter();
    if (paced_) {
        lag_.emplace(start_ns_, stop_ns_);
    }
}

void SubscriberStep::stop(std::int64_t stop_at_ns) {
    stop_ns_ = std::min(stop_ns_, stop_at_ns);
}

bool SubscriberStep::finish(const Finish& command, std::int64_t now_ns) {
    bool back = false;
    if (!finish_) {
        transport_->undrained(command.system);
        if (impairments_.absent()) {
            come_back();  // first, because a failed command is repeated
            back = true;
        }
        impairments_.end();
        // Without the ids: each of thousands of clients in one process would keep all of them.
        finish_ = Finish{.epoch = command.epoch,
                         .publishers = topics_ ? topics_->expect(command.publishers) : command.publishers,
                         .drain_max_s = command.drain_max_s,
                         .quiet_s = command.quiet_s,
                         .system = command.system};
        received_ns_ = now_ns;
        deadline_ns_ = now_ns + to_ns(command.drain_max_s);
    }
    return back;
}

// The time without a message after which a drain ends.
std::int64_t SubscriberStep::quiet_ns() const {
    return std::max(to_ns(finish_->quiet_s), kQuietGaps * longest_gap_ns_);
}

bool SubscriberStep::drained(std::int64_t now_ns) {
    if (!finish_ || ended_) {
        return ended_.has_value();
    }
    // Partitions are not in order with each other: while one holds messages, the last sequence proves
    // nothing.
    const bool undrained = transport_->undrained(finish_->system) > 0;
    // Another member of a consumer group may have received what this one misses: no sequence ends a member's
    // drain.
    if (!member_ && !undrained && ledger_.has_last(finish_->publishers)) {
        ended_ = DrainEnd::complete;
    } else if (ledger_.marked(finish_->publishers)) {
        ended_ = DrainEnd::marked;
    } else if (failed_ || now_ns > deadline_ns_) {
        ended_ = DrainEnd::deadline;  // it is unknown how much of the rest was lost
    } else if (!undrained && now_ns - received_ns_ > quiet_ns()) {
        ended_ = DrainEnd::quiet;
    }
    return ended_.has_value();
}

SubscriberReport SubscriberStep::report() {
    if (!finish_ || !ended_) {
        throw std::logic_error("a step is reported after it was drained");
    }
    if (absent_since_ns_ != 0) {
        end_absence(stop_ns_);
    }
    SubscriberReport it;
    it.ledgers = ledger_.close(finish_->publishers, member_);
    it.batches = batches_;
    it.first_batch = first_batch_;
    if (clock_ && batches_ > 0) {
        it.first_ns = step_ns(first_ns_);
        it.last_ns = step_ns(batch_ns_);
    }
    it.bytes = ledger_.bytes();
    it.stale = ledger_.stale();
    it.latency = latency_.histogram();
    it.latency.counts.shrink_to_fit();  // thousands of clients in one process keep their reports
    it.usage = usage_.read();
    it.undrained = transport_->undrained(finish_->system);
    it.absent = absent_;
    it.reconnects = reconnects_;
    // A slow reader whose buffers never filled lost nothing: its slowness had no effect.
    it.felt = !receive_rate_ || member_ ||
              std::ranges::any_of(it.ledgers, [](const LedgerCounts& l) { return l.missing > 0; });
    it.drain = *ended_;
    if (lag_) {
        it.lag_bins_us = lag_->means_us();
    }
    it.system = transport_->report_system();
    if (topics_) {
        topics_->complete(it, ledger_, finish_->publishers);
    }
    return it;
}

}  // namespace hydra
