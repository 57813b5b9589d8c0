#include "common/publisher.h"

#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "common/clock.h"

namespace hydra {
namespace {

// The first probe is sent before any subscriber can have connected.
constexpr std::int64_t kFirstProbesApartNs = 20 * kMillisecondNs;
constexpr std::int64_t kProbesApartNs = kSecondNs;
// In a consumer group each probe reaches, and wakes up, only one member.
constexpr std::int64_t kGroupProbesApartNs = 50 * kMillisecondNs;
// With thousands of subscribers, a probe costs seconds of CPU in all, and delays subscribers that still
// connect. So sending probes may take at most a sixteenth of the time, unless the wait would exceed
// kRestAtMostNs.
constexpr std::int64_t kProbesShare = 16;
constexpr std::int64_t kRestAtMostNs = 4 * kSecondNs;
constexpr std::int64_t kEndMarkersForNs = 60 * kSecondNs;
constexpr std::int64_t kErrorsApartNs = 2 * kSecondNs;
// How long the publisher waits for probes on their way when it has to end them.
constexpr double kProbesOutS = 1;
constexpr std::int64_t kFreedWithinNs = 2 * kSecondNs;
constexpr std::int64_t kIdleNs = 2 * kSecondNs;  // after this time the transport is polled
// While chunk follows chunk, a command may wait for this long: looking costs a system call.
constexpr std::int64_t kLookEveryNs = kMillisecondNs;
constexpr std::uint64_t kControlToken = 0;
constexpr std::uint64_t kTransportToken = 1;
constexpr unsigned long kTimerSlackNs =
    1000;  // the kernel's 50 µs would be added to every wait for a due time
// An idle core of a virtual machine wakes up a thread 40 to 60 µs late, whatever the slack.
constexpr std::int64_t kSpinNs = 80'000;

}  // namespace

Publisher::Publisher(ControlClient& control, PublisherTransport& transport, Pacing pacing, MemoryLimit memory)
    : control_(control), transport_(transport), pacing_(pacing), memory_(memory), waiter_(kSpinNs) {
    if (transport.wake_fd() >= 0) {
        waiter_.add(transport.wake_fd(), kTransportToken);
    }
    control.watch(&waiter_, kControlToken);
    prctl(PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0, 0);
}

Publisher::~Publisher() {
    control_.watch(nullptr, 0);
}

void Publisher::run() {
    std::int64_t looked_ns = 0;
    while (true) {
        while (const auto message = control_.receive()) {
            if (std::holds_alternative<Quit>(*message)) {
                return;
            }
            std::visit([this](const auto& command) { obey(command); }, *message);
        }
        const std::int64_t now_ns = monotonic_ns();
        const std::int64_t until_ns = work(now_ns);
        if (control_.stirred() || (until_ns == 0 && now_ns - looked_ns < kLookEveryNs)) {
            continue;
        }
        looked_ns = now_ns;
        for (const Waiter::Wake& wake : waiter_.wait(until_ns)) {
            if (wake.token == kControlToken) {
                control_.stir();
            } else {
                transport_.poll();
            }
        }
    }
}

// Does what is due now; returns until when the loop may wait for a command, 0 for not at all.
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
            control_.send(Progress{.ids = control_.ids(),
                                   .epoch = command_->epoch,
                                   .messages = step_->sent(),
                                   .time_ns = *told_ns});
        }
        send_time_series(step_->time_series_due(now_ns));
        return until_ns;
    }
    transport_.poll();
    if (errors_.due(now_ns)) {
        // The window ends here for all clients: the publisher repeats the error until the controller ends the
        // step.
        control_.send(
            Error{.ids = control_.ids(), .epoch = command_->epoch, .message = step_->stopped_early()});
    }
    if (done_.due(now_ns)) {
        // The window ends when all publishers have sent this.
        control_.send(Progress{.ids = control_.ids(),
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

void Publisher::send_time_series(std::vector<SecondCounts> seconds) {
    for (std::vector<SecondCounts>& part : parts_of(std::move(seconds))) {
        control_.send(
            TimeSeries{.ids = control_.ids(), .epoch = command_->epoch, .seconds = std::move(part)});
    }
}

// When the next probe may be sent, from the CPU time that this process has used since the last one.
std::int64_t Publisher::rested_ns() const {
    if (!command_->group.empty() || command_->connect) {
        return 0;
    }
    const Usage used = used_.read();
    const std::int64_t rest_ns = kProbesShare * to_ns(used.cpu_user_s + used.cpu_system_s);
    return rest_ns <= kProbesApartNs ? 0 : probed_ns_ + std::min(rest_ns, kRestAtMostNs);
}

// Sends a probe or an end marker, depending on the sequence. A probe carries no time: the step's clock is
// unknown.
void Publisher::signal(std::uint64_t sequence) {
    const std::int64_t now_ns = step_ != nullptr ? step_->step_ns(monotonic_ns()) : 0;
    transport_.probe({kProbeEpoch, control_.ids().front(), sequence, static_cast<std::uint64_t>(now_ns)});
    transport_.poll();
}

void Publisher::obey(const Configure& command) {
    if (command.epoch < epoch_) {
        return;
    }
    if (!command_ || command.epoch > epoch_) {
        const bool full = step_ != nullptr && !step_->stopped_early().empty();
        if (full) {
            // The queue is full of the last step's messages: only a new connection is without them.
            transport_.close();
        }
        // Even if the next lines fail, the last step has ended: its connection may be closed.
        epoch_ = command.epoch;
        probes_ = end_markers_ = errors_ = done_ = Backoff();
        command_.reset();
        step_.reset();
        report_.reset();
        try {
            if (const std::string why = no_load(command.load); !why.empty()) {
                throw TransportError(why);
            }
            if (const std::string why = command.traffic ? no_traffic(*command.traffic) : ""; !why.empty()) {
                throw TransportError(why);
            }
            payload_.set(command, transport_.block_bytes());
            endpoint_ = transport_.configure(command);
        } catch (const TransportError& e) {
            control_.refuse(control_.ids(), command, e.what());
            return;
        }
        memory_.begin_step(full ? kFreedWithinNs : 0);
        command_ = command;
        if (command.probe) {
            std::int64_t first_ns = kFirstProbesApartNs;
            std::int64_t apart_ns = kProbesApartNs;
            if (!command.group.empty()) {
                first_ns = apart_ns = kGroupProbesApartNs;
            }
            if (command.connect) {
                first_ns = apart_ns = to_ns(command.connect->probe_s);
            }
            probes_ = Backoff(monotonic_ns(), apart_ns, kNeverNs, first_ns);
        }
    } else if (!command.probe && probes_.next_ns() != kNeverNs) {
        // No subscriber needs probes any more, and an acknowledged command promises that none is on its way.
        probes_ = Backoff();
        transport_.flush(kProbesOutS);
    }
    control_.acknowledge(control_.ids(), command);
    control_.send(Ready{
        .ids = control_.ids(), .epoch = command.epoch, .number = command.number, .endpoint = endpoint_});
}

void Publisher::obey(const Start& command) {
    if (!command_ || command.epoch != command_->epoch) {
        return;
    }
    if (step_ == nullptr) {
        probes_ = Backoff();
        step_ = std::make_unique<PublisherStep>(control_.ids().front(), *command_, command, transport_,
                                                payload_, pacing_, memory_);
    }
    control_.acknowledge(control_.ids(), command);
}

void Publisher::obey(const Stop& command) {
    if (!command_ || command.epoch != command_->epoch || step_ == nullptr) {
        return;
    }
    if (!report_) {
        errors_ = done_ = Backoff();
        step_->stop(command.stop_at_ns);
        send_time_series(step_->time_series());
        report_ = Report{.ids = control_.ids(), .epoch = command.epoch, .publisher = step_->report()};
        if (transport_.marks_end()) {
            end_markers_ = Backoff(monotonic_ns(), kNeverNs, kEndMarkersForNs);
        }
    }
    report_->number = command.number;
    control_.send(*report_);
}

}  // namespace hydra
