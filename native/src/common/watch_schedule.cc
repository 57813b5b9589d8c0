#include "common/watch_schedule.h"

#include <algorithm>
#include <cstddef>

namespace hydra {
namespace {

constexpr std::int64_t kTellWithinNs = kSecondNs;
// A controller that continues to watch resends `watch` more often; one that does not may be dead.
constexpr std::int64_t kPatienceNs = 30 * kSecondNs;
constexpr std::int64_t kLeastNs = 10 * kMillisecondNs;  // CPU is counted in ticks of this length

}  // namespace

void WatchSchedule::obey(const Watch& watch, std::int64_t now_ns) {
    if (watch.epoch < epoch_) {
        return;
    }
    if (watch.epoch > epoch_) {
        epoch_ = watch.epoch;
        ended_ = false;
        forget();
    }
    if (watch.every_s == 0) {
        // Answered in any case: the controller repeats it until it has an answer.
        send();
        ended_ = true;
        forget();
    } else if (!ended_) {
        if (every_ns_ == 0) {
            read_ = open_();
            sample_due_ns_ = now_ns;
        }
        every_ns_ = std::max(to_ns(watch.every_s), kLeastNs);
        host_ = watch.host;
        forget_due_ns_ = now_ns + kPatienceNs;
    }
}

void WatchSchedule::work(std::int64_t now_ns) {
    if (every_ns_ == 0) {
        return;
    }
    if (now_ns >= forget_due_ns_) {
        forget();
        return;
    }
    if (now_ns >= sample_due_ns_) {
        samples_.push_back(read_(now_ns, host_));
        // Samples that were missed because this process did not run are skipped.
        sample_due_ns_ += (1 + (now_ns - sample_due_ns_) / every_ns_) * every_ns_;
    }
    if (samples_.size() == kMaxSamples || now_ns >= send_due_ns()) {
        send();
    }
}

std::int64_t WatchSchedule::due_ns() const {
    return every_ns_ == 0 ? kNeverNs : std::min({sample_due_ns_, send_due_ns(), forget_due_ns_});
}

std::int64_t WatchSchedule::send_due_ns() const {
    return samples_.empty() ? kNeverNs : samples_.front().time_ns + kTellWithinNs;
}

void WatchSchedule::send() {
    send({.ids = ids_, .epoch = epoch_, .samples = samples_});
    samples_.clear();
}

// Sent in halves if it does not fit into one message, because of many cores and interfaces; a single sample
// that does not fit is left out.
void WatchSchedule::send(const HostReadings& host) {
    if (send_(host)) {
        return;
    }
    if (host.samples.size() < 2) {
        send_({.ids = host.ids, .epoch = host.epoch});
        return;
    }
    const auto middle = host.samples.begin() + static_cast<std::ptrdiff_t>(host.samples.size() / 2);
    send({.ids = host.ids, .epoch = host.epoch, .samples = {host.samples.begin(), middle}});
    send({.ids = host.ids, .epoch = host.epoch, .samples = {middle, host.samples.end()}});
}

void WatchSchedule::forget() {
    every_ns_ = 0;
    samples_.clear();
}

}  // namespace hydra
