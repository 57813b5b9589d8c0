#include "common/publisher.h"

#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "common/clock.h"

namespace hydra {
namespace {

constexpr std::int64_t kProbesApartNs = kSecondNs;
// In a group each probe reaches one member only, and wakes nobody else.
constexpr std::int64_t kGroupProbesApartNs = 50 * kMillisecondNs;
// Where there are thousands of listeners, a probe takes seconds of CPU in all, and keeps its publisher from
// those who still dial in. So it has at most a sixteenth of the time between two, which are never further
// apart than this.
constexpr std::int64_t kProbesShare = 16;
constexpr std::int64_t kRestAtMostNs = 4 * kSecondNs;
constexpr std::int64_t kEndMarkersForNs = 60 * kSecondNs;
constexpr std::int64_t kErrorsApartNs = 2 * kSecondNs;
// Probes that are under way when they are told to end.
constexpr double kProbesOutS = 1;
constexpr std::int64_t kFreedWithinNs = 2 * kSecondNs;
constexpr std::int64_t kIdleNs = 2 * kSecondNs;  // and then its transport is polled
constexpr std::uint64_t kChannelToken = 0;
constexpr std::uint64_t kTransportToken = 1;
constexpr unsigned long kTimerSlackNs =
    1000;  // the kernel's 50 µs would be added to every wait for a due time
// A virtual machine's idle core wakes a thread 40 to 60 µs after its time, whatever the slack.
constexpr std::int64_t kSpinNs = 80'000;

}  // namespace

Publisher::Publisher(Channel& channel, PublisherTransport& transport, Pacing pacing, MemoryLimit memory)
    : channel_(channel), transport_(transport), pacing_(pacing), memory_(memory), waiter_(kSpinNs) {
    if (transport.wake_fd() >= 0) {
        waiter_.add(transport.wake_fd(), kTransportToken);
    }
    channel.watch(&waiter_, kChannelToken);
    prctl(PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0, 0);
}

Publisher::~Publisher() {
    channel_.watch(nullptr, 0);
}

void Publisher::run() {
    while (true) {
        while (const auto message = channel_.receive()) {
            if (std::holds_alternative<Quit>(*message)) {
                return;
            }
            std::visit([this](const auto& command) { obey(command); }, *message);
        }
        const std::int64_t until_ns = work(monotonic_ns());
        if (channel_.stirred()) {
            continue;
        }
        for (const Waiter::Wake& wake : waiter_.wait(until_ns)) {
            if (wake.token == kChannelToken) {
                channel_.stir();
            } else {
                transport_.poll();
            }
        }
    }
}

// Does what is due now; until when the loop may wait for a command, 0 for not at all.
std::int64_t Publisher::work(std::int64_t now_ns) {
    if (step_ != nullptr && !step_->finished()) {
        const std::int64_t until_ns = step_->work(now_ns);
        if (!step_->stopped_early().empty()) {
            errors_ = Backoff(now_ns, kErrorsApartNs, kNeverNs);
        }
        if (step_->completed_ns() != 0) {
            done_ = Backoff(now_ns, kErrorsApartNs, kNeverNs);
        }
        if (const auto told_ns = step_->progress_due(now_ns)) {
            channel_.send(Progress{.ids = channel_.ids(),
                                   .epoch = command_->epoch,
                                   .messages = step_->sent(),
                                   .time_ns = *told_ns});
        }
        tell_course(step_->course_due(now_ns));
        return until_ns;
    }
    transport_.poll();
    if (errors_.due(now_ns)) {
        // Its window ends here for everybody: the controller is told until it says so itself.
        channel_.send(
            Error{.ids = channel_.ids(), .epoch = command_->epoch, .message = step_->stopped_early()});
    }
    if (done_.due(now_ns)) {
        // As above: the window ends when all have said so.
        channel_.send(Progress{.ids = channel_.ids(),
                               .epoch = command_->epoch,
                               .messages = step_->sent(),
                               .time_ns = step_->completed_ns()});
    }
    if (now_ns >= probes_.next_ns() && probes_.due(now_ns, rested_ns())) {
        probed_ns_ = now_ns;
        used_ = UsageMeter();
        signal(command_->epoch);
    }
    if (end_markers_.due(now_ns)) {
        signal(kSequenceLimit | command_->epoch);
    }
    return std::min(
        {errors_.next_ns(), done_.next_ns(), probes_.next_ns(), end_markers_.next_ns(), now_ns + kIdleNs});
}

void Publisher::tell_course(std::vector<SecondCounts> seconds) {
    for (std::vector<SecondCounts>& part : parts_of(std::move(seconds))) {
        channel_.send(
            TimeSeries{.ids = channel_.ids(), .epoch = command_->epoch, .seconds = std::move(part)});
    }
}

// When the next probe may come, by what this process has used since the last one.
std::int64_t Publisher::rested_ns() const {
    if (!command_->group.empty()) {
        return 0;
    }
    const Usage used = used_.read();
    const std::int64_t rest_ns = kProbesShare * to_ns(used.cpu_user_s + used.cpu_system_s);
    return rest_ns <= kProbesApartNs ? 0 : probed_ns_ + std::min(rest_ns, kRestAtMostNs);
}

// A probe or an end marker, by its sequence. A probe comes before the step's clock is known, and has no time.
void Publisher::signal(std::uint64_t sequence) {
    const std::int64_t now_ns = step_ != nullptr ? step_->step_ns(monotonic_ns()) : 0;
    transport_.probe({kProbeEpoch, channel_.ids().front(), sequence, static_cast<std::uint64_t>(now_ns)});
    transport_.poll();
}

void Publisher::obey(const Configure& command) {
    if (command.epoch < epoch_) {
        return;
    }
    if (!command_ || command.epoch > epoch_) {
        const bool full = step_ != nullptr && !step_->stopped_early().empty();
        if (full) {
            // Of the last step's messages: only a new connection is without them.
            transport_.close();
        }
        // Whatever comes of it, the last step is over: what it sent with may be gone.
        epoch_ = command.epoch;
        probes_ = end_markers_ = errors_ = done_ = Backoff();
        command_.reset();
        step_.reset();
        report_.reset();
        try {
            if (const std::string why = no_load(command.load); !why.empty()) {
                throw TransportError(why);
            }
            payload_.set(command, transport_.block_bytes());
            endpoint_ = transport_.configure(command);
        } catch (const TransportError& e) {
            channel_.complain(channel_.ids(), command.epoch, e.what());
            return;
        }
        memory_.begin_step(full ? kFreedWithinNs : 0);
        command_ = command;
        if (command.probe) {
            const std::int64_t apart_ns = command.group.empty() ? kProbesApartNs : kGroupProbesApartNs;
            probes_ = Backoff(monotonic_ns(), apart_ns, kNeverNs);
        }
    } else if (!command.probe && probes_.next_ns() != kNeverNs) {
        // Nobody needs them any more, and whoever acknowledges this has none under way.
        probes_ = Backoff();
        transport_.flush(kProbesOutS);
    }
    channel_.acknowledge(channel_.ids(), command.epoch, "configure");
    channel_.send(Ready{.ids = channel_.ids(), .epoch = command.epoch, .endpoint = endpoint_});
}

void Publisher::obey(const Start& command) {
    if (!command_ || command.epoch != command_->epoch) {
        return;
    }
    if (step_ == nullptr) {
        probes_ = Backoff();
        step_ = std::make_unique<PublisherStep>(channel_.ids().front(), *command_, command, transport_,
                                                payload_, pacing_, memory_);
    }
    channel_.acknowledge(channel_.ids(), command.epoch, "start");
}

void Publisher::obey(const Stop& command) {
    if (!command_ || command.epoch != command_->epoch || step_ == nullptr) {
        return;
    }
    if (!report_) {
        errors_ = done_ = Backoff();
        step_->stop(command.stop_at_ns);
        tell_course(step_->course());
        report_ = Report{.ids = channel_.ids(), .epoch = command.epoch, .body = step_->report()};
        if (transport_.marks_end()) {
            end_markers_ = Backoff(monotonic_ns(), kNeverNs, kEndMarkersForNs);
        }
    }
    channel_.send(*report_);
}

}  // namespace hydra
