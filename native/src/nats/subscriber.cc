#include "nats/subscriber.h"

#include <algorithm>
#include <utility>

#include "common/system_fields.h"

namespace hydra {

void NatsSubscriber::configure(const Configure& command) {
    NatsStep step = nats_step(command);
    if (!step.stream.empty() && topics_of(command) > 1 && has_all(*command.traffic)) {
        chosen_ = {.wildcard = true};  // one pattern costs the server less than all subjects
    }
    if (!connection_.reaches(step) || chosen_.topics.empty() != topics_.topics.empty()) {
        consumer_.reset();
        connection_.close();
        topics_ = chosen_;
        open(step);
    }
    returns_ = command.connect.has_value();
    const bool stands_there = step.stream.empty() || position() + 1 == step.first;
    NatsStep before = step_.value_or(NatsStep{});
    before.first = step.first;
    if (consumer_ == nullptr || before != step || !stands_there || chosen_ != topics_) {
        consumer_.reset();
        step_.reset();  // so that a repeated command tries again after a failure
        topics_ = chosen_;
        consumer_ = std::make_unique<NatsFeed>(connection_, step, topics_, returns_);
        step_ = std::move(step);
    }
    connection_.begin_step();
    dropped_before_ = consumer_->dropped();
}

void NatsSubscriber::open(const NatsStep& step) {
    connection_.open(step, has_one_thread(step, topics_), within_ms_);
}

// With TLS the connections of a process take turns (NatsAccess).
std::size_t NatsSubscriber::connects_aside(const Configure& command) const {
    return nats_step(command).tls ? 1 : 64;
}

void NatsSubscriber::connect(const Configure& command, std::int64_t limit_ns) {
    within_ms_ = limit_ns / kMillisecondNs;
    configure(command);
    within_ms_ = NatsConnection::kConnectWithinMs;
}

bool NatsSubscriber::receive(Batch& batch) {
    return consumer_ != nullptr && consumer_->inbox().take(batch);
}

// A consumer of a stream continues after the last message that was taken.
void NatsSubscriber::reconnect() {
    NatsStep step = *step_;
    step.first = position() + 1;
    consumer_.reset();
    connection_.close();
    open(step);
    consumer_ = std::make_unique<NatsFeed>(connection_, step, topics_, returns_);
    step_ = std::move(step);
    dropped_before_ = 0;
}

void NatsSubscriber::leave() {
    step_->first = position() + 1;
    consumer_.reset();
    connection_.close();
}

// Core NATS stores no messages, so the number is unknown.
std::uint64_t NatsSubscriber::undrained(const SystemObject& system) {
    if (!system || !step_ || step_->stream.empty()) {
        return 0;
    }
    const std::uint64_t last = read_system<NatsEnd>(system).last;
    if (consumer_ != nullptr && consumer_->filters()) {
        return consumer_->waiting();
    }
    return last - std::min(last, position());
}

SystemObject NatsSubscriber::report_system() const {
    NatsTrouble trouble = connection_.trouble();
    trouble.dropped = consumer_ == nullptr ? 0 : consumer_->dropped() - dropped_before_;
    if (trouble.disconnects > 0) {
        trouble.lost_why = reported(connection_.losses().why);
    }
    return written_system(trouble);
}

std::uint64_t NatsSubscriber::position() const {
    const std::uint64_t started = step_ ? step_->first - 1 : 0;
    return consumer_ == nullptr ? started : std::max(started, consumer_->inbox().position());
}

}  // namespace hydra
