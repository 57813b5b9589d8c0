#include "common/publisher_step.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/clock.h"

namespace hydra {
namespace {

constexpr std::int64_t kMicrosecondNs = 1'000;
constexpr double kFlushAtMostS = 10;
// How long the publisher waits for the last answers before it reads the control channel again.
constexpr double kAnswersS = 0.02;
constexpr std::int64_t kMemoryEveryNs = 5 * kMillisecondNs;
// A longer batch is handed over in pieces: its times are kept in memory, and the memory limit is checked
// between two chunks.
constexpr std::uint64_t kLongestChunk = 65'536;
constexpr std::uint64_t kLargestChunkBytes = 16 * 1024 * 1024;
// While the publisher waits for a due time, the library may have acknowledgements to deliver.
constexpr std::int64_t kPollEveryNs = 100 * kMillisecondNs;

std::uint64_t chunk_limit(const Settings& settings) {
    const std::uint64_t fit = std::max<std::uint64_t>(kLargestChunkBytes / settings.message_size, 1);
    return std::min({settings.burst, kLongestChunk, fit});
}

std::optional<PublisherTraffic> traffic_of(const Configure& command, Id publisher) {
    if (!command.traffic) {
        return std::nullopt;
    }
    return PublisherTraffic(std::make_shared<const Traffic>(*command.traffic), publisher);
}

}  // namespace

PublisherStep::PublisherStep(Id publisher, const Configure& command, const Start& start,
                             PublisherTransport& transport, PayloadBlock& payload, Pacing pacing,
                             MemoryLimit& memory)
    : publisher_(publisher),
      epoch_(command.epoch),
      transport_(transport),
      payload_(payload),
      traffic_(traffic_of(command, publisher)),
      memory_(memory),
      clock_(start.clock),
      pacer_(command.settings.rate, start.start_at_ns, start.stop_at_ns, chunk_limit(command.settings),
             pacing, command.settings.messages, LoadSchedule(command.load)),
      stop_at_ns_(start.stop_at_ns),
      times_(chunk_limit(command.settings)),
      time_series_every_ns_(to_ns(command.course_s)),
      next_time_series_ns_(start.start_at_ns + time_series_every_ns_),
      progress_ns_(to_ns(command.progress_s)),
      next_progress_ns_(start.start_at_ns + progress_ns_) {
    if (!pacer_.paced()) {
        watch_.emplace(start.start_at_ns);
    }
}

std::int64_t PublisherStep::work(std::int64_t monotonic) {
    const std::int64_t now_ns = step_ns(monotonic);
    transport_.poll();
    if (pacer_.done(now_ns) || exhausted(monotonic)) {
        finished_ = !answers_awaited(now_ns);
        return 0;
    }
    const std::uint64_t count = pacer_.due(now_ns);
    if (count > 0) {
        send_chunk(count, now_ns);
        return 0;
    }
    std::int64_t until_ns = pacer_.next_due_ns().value_or(pacer_.start_ns());
    if (progress_ns_ > 0) {
        until_ns = std::min(until_ns, next_progress_ns_);
    }
    if (time_series_every_ns_ > 0) {
        until_ns = std::min(until_ns, next_time_series_ns_);
    }
    return std::min(clock_.monotonic_of(until_ns), monotonic + kPollEveryNs);
}

// Whether all messages of a step with a limited number were sent, and answers may still follow. The step is
// complete with the last answer: messages that wait in the library have not been sent.
bool PublisherStep::answers_awaited(std::int64_t now_ns) {
    if (!pacer_.complete() || !stopped_early_.empty()) {
        return false;
    }
    if (!transport_.flush(kAnswersS)) {
        return now_ns < stop_at_ns_;
    }
    const auto delivery = transport_.delivery();
    completed_ns_ = end_ns(delivery ? delivery->last_ack_ns : 0);
    return false;
}

// The last acknowledgement, or the last send if there are no acknowledgements, on the step's clock.
std::int64_t PublisherStep::end_ns(std::int64_t last_ack_ns) const {
    return last_ack_ns != 0 ? step_ns(last_ack_ns) : last_ns_;
}

void PublisherStep::send_chunk(std::uint64_t count, std::int64_t now_ns) {
    if (refused_.empty()) {
        const std::span<std::uint64_t> times(times_.data(), count);
        pacer_.times(times, now_ns);
        refused_ = times;
    }
    const std::size_t accepted =
        transport_.send({epoch_, publisher_, pacer_.sent(), refused_, payload_, traffic()});
    const std::int64_t after_ns = step_ns(monotonic_ns());
    if (pacer_.paced()) {
        for (const std::uint64_t due_ns : refused_.first(accepted)) {
            lag_.record_us((now_ns - static_cast<std::int64_t>(due_ns)) / 1000);
        }
    }
    refused_ = refused_.subspan(accepted);
    if (!refused_.empty()) {
        blocked_ns_ += after_ns - now_ns;
    }
    if (accepted > 0) {
        if (first_ns_ == 0) {
            first_ns_ = now_ns;
        }
        last_ns_ = after_ns;
        pacer_.advance(accepted);
        if (time_series_every_ns_ > 0) {
            time_series_.add(second_of(after_ns - pacer_.start_ns()), accepted);
        }
    }
}

bool PublisherStep::exhausted(std::int64_t now_ns) {
    if (now_ns < next_look_ns_) {
        return false;
    }
    next_look_ns_ = now_ns + kMemoryEveryNs;
    look_at_progress(step_ns(now_ns));
    stopped_early_ = memory_.exceeded();
    return !stopped_early_.empty();
}

std::optional<std::int64_t> PublisherStep::progress_due(std::int64_t monotonic) {
    const std::int64_t now_ns = step_ns(monotonic);
    // A publisher that has sent all messages reports it when they are answered.
    if (progress_ns_ == 0 || now_ns < next_progress_ns_ || pacer_.complete()) {
        return std::nullopt;
    }
    next_progress_ns_ = now_ns + progress_ns_;
    return now_ns;
}

std::vector<SecondCounts> PublisherStep::time_series_due(std::int64_t monotonic) {
    const std::int64_t now_ns = step_ns(monotonic);
    if (time_series_every_ns_ == 0 || now_ns < next_time_series_ns_) {
        return {};
    }
    next_time_series_ns_ = now_ns + time_series_every_ns_;
    return time_series_.take();
}

void PublisherStep::look_at_progress(std::int64_t now_ns) {
    if (watch_) {
        watch_->look(std::min(now_ns, stop_at_ns_), transport_.accepted().value_or(pacer_.sent()));
    }
}

void PublisherStep::stop(std::int64_t stop_at_ns) {
    stop_at_ns_ = std::min(stop_at_ns_, stop_at_ns);
    if (stopped_early_.empty() && !pacer_.complete()) {
        look_at_progress(step_ns(monotonic_ns()));
    }
    pacer_.stop_at(stop_at_ns);
    finished_ = true;
}

bool join_beyond(std::vector<Range>& ranges, std::size_t most) {
    if (ranges.size() <= most) {
        return false;
    }
    ranges[most - 1].last = ranges.back().last;
    ranges.resize(most);
    return true;
}

// Without empty fields.
nlohmann::json PublisherStep::acceptance() const {
    nlohmann::json it = nlohmann::json::object();
    if (const FirstReason refused = transport_.refused(); !refused.reason.empty()) {
        it["reason"] = refused.reason;
        it["text"] = refused.text;
        it["messages"] = refused.messages;
    }
    if (const ConnectionLosses lost = transport_.losses(); lost.count > 0) {
        it["lost_connections"] = lost.count;
        it["lost_why"] = reported(lost.why);
    }
    if (watch_ && watch_->longest_ns() >= kMicrosecondNs) {
        it["stalled_us"] = watch_->longest_ns() / kMicrosecondNs;
    }
    return it;
}

// The transport's report, with what was not accepted, and the bytes of all messages on the connection if
// their sizes determine them.
SystemObject PublisherStep::report_system() const {
    const SystemObject system_report = transport_.report_system();
    const nlohmann::json unaccepted = acceptance();
    const bool framed = transport_.framed_bytes(kHeaderBytes).has_value();
    if (!framed && unaccepted.empty()) {
        return system_report;
    }
    nlohmann::json object = system_report ? system_report.json() : nlohmann::json::object();
    if (!unaccepted.empty()) {
        object["acceptance"] = unaccepted;
    }
    if (!framed) {
        return SystemObject(object);
    }
    object["wire_bytes"] = payload_.total_bytes(
        pacer_.sent(), [this](std::uint64_t size) { return transport_.framed_bytes(size).value_or(0); },
        traffic());
    return SystemObject(object);
}

PublisherReport PublisherStep::report() {
    transport_.flush(kFlushAtMostS);
    PublisherReport it;
    it.sent = it.acknowledged = pacer_.sent();
    it.first_ns = first_ns_;
    it.last_ns = last_ns_;
    if (auto delivery = transport_.delivery()) {
        it.acknowledged = delivery->acknowledged;
        it.failed = delivery->failed;
        it.unacknowledged = std::move(delivery->unacknowledged);
        it.ack_latency = std::move(delivery->ack_latency);
        it.unacknowledged_joined = join_beyond(it.unacknowledged, kMaxUnacknowledgedRanges);
        it.last_ns = end_ns(delivery->last_ack_ns);
    }
    it.bytes = payload_.total_bytes(it.sent, [](std::uint64_t size) { return size; }, traffic());
    it.lag = lag_.histogram();
    it.usage = usage_.read();
    it.blocked_ns = blocked_ns_;
    it.stopped_early = stopped_early_;
    it.system = report_system();
    return it;
}

}  // namespace hydra
