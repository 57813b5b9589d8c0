#include "mqtt/subscriber.h"

#include <utility>

#include "common/system_fields.h"

namespace hydra {

// The subscription is kept unless it changed or the connection is lost.
void MqttSubscriber::configure(const Configure& command) {
    MqttStep step = step_of(command);
    if (command.epoch != epoch_) {
        // A connection that was lost between two steps belongs to neither.
        epoch_ = command.epoch;
        lost_why_.clear();
        was_silent_ = false;
    }
    step.retain = false;  // only for publishers
    std::vector<std::string> subscriptions = filters(step, command.group, command.publishers, chosen_);
    const bool same = step == step_ && subscriptions == filters_;
    if (connection_ != nullptr && same) {
        // A connection that the server has closed meanwhile shows it only when it is read.
        connection_->read_all();
        if (connection_->lost().empty()) {
            return;
        }
    }
    if (!same || name_.empty()) {
        // Under its old name the server could have kept other subscriptions of this client.
        name_ = new_client_name(step);
    }
    step_ = std::move(step);
    filters_ = std::move(subscriptions);
    connect();
}

void MqttSubscriber::connect() {
    connection_.reset();
    auto connection = std::make_unique<MqttConnection>(
        name_, step_,
        MqttConnection::Handlers{
            .message = [this](const void* payload, std::size_t size) { take(payload, size); }},
        limit_ns_);
    connection->subscribe(filters_, step_.qos);
    connection_ = std::move(connection);
}

void MqttSubscriber::connect(const Configure& command, std::int64_t limit_ns) {
    limit_ns_ = limit_ns;
    configure(command);
    limit_ns_ = MqttConnection::kAnswerWithinNs;
}

ConnectPhases MqttSubscriber::phases() const {
    return connection_ == nullptr ? ConnectPhases() : connection_->phases();
}

void MqttSubscriber::take(const void* payload, std::size_t size) {
    if (batch_ != nullptr && !batch_->full()) {
        batch_->add(payload, size);
    } else if (size >= kHeaderBytes) {
        kept_.emplace_back(read_header(payload), size);
    }
}

// A lost connection gives no more messages: the next `configure` makes another.
bool MqttSubscriber::receive(Batch& batch) {
    while (!kept_.empty() && !batch.full()) {
        batch.add(&kept_.front().first, kept_.front().second);
        kept_.pop_front();
    }
    if (connection_ == nullptr) {
        return false;
    }
    connection_->keep_alive();  // not for each message: a batch has a limit
    batch_ = &batch;
    bool more = true;
    while (more && !batch.full()) {
        more = connection_->read();
    }
    batch_ = nullptr;
    connection_->write();  // answers that the socket did not accept at once
    return more || !kept_.empty();
}

// The server ends a connection that is silent for one and a half times the keepalive.
std::int64_t MqttSubscriber::tend(std::int64_t now_ns, bool between_steps) {
    if (connection_ == nullptr || !connection_->lost().empty() || step_.keepalive == 0) {
        return kNeverNs;
    }
    if (between_steps) {
        connection_->read_all();
        // End markers continue for a while, and are no longer needed.
        std::erase_if(kept_, [](const auto& it) { return it.first.epoch == kProbeEpoch; });
    }
    connection_->keep_alive();
    connection_->write();
    return now_ns + step_.keepalive * kSecondNs / 4;
}

void MqttSubscriber::reconnect() {
    disconnect();
    connect();
}

void MqttSubscriber::leave() {
    disconnect();
}

// The next connection does not hide that this one was lost.
void MqttSubscriber::disconnect() {
    lost_why_ = lost_why();
    was_silent_ = was_silent();
    connection_.reset();
}

void MqttSubscriber::inherit(const SubscriberTransport& earlier) {
    const auto& it = dynamic_cast<const MqttSubscriber&>(earlier);
    epoch_ = it.epoch_;
    lost_why_ = it.lost_why();
    was_silent_ = it.was_silent();
    // A client that comes back has the name that the server knows.
    name_ = it.name_;
    step_ = it.step_;
    filters_ = it.filters_;
}

SystemObject MqttSubscriber::report_system() const {
    const std::string why = lost_why();
    MqttReport report = MqttReport::of(!why.empty(), was_silent());
    if (!why.empty()) {
        report.lost_why = reported(why);
    }
    return written_system(report);
}

}  // namespace hydra
