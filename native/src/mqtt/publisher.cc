#include "mqtt/publisher.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "common/clock.h"
#include "common/system_fields.h"

namespace hydra {
namespace {

constexpr std::size_t kMessageIds = 65'536;
constexpr std::int64_t kFree = -2;    // no message on its way has this message id
constexpr std::int64_t kNoData = -1;  // a probe, or a message of an earlier step
constexpr int kFullWaitMs = 5;
constexpr int kFlushStepMs = 5;
constexpr int kSignalWaits = 10;  // of kFullWaitMs, for the signals of one call
// A server delivers a round of signals to thousands of topics for seconds: it gets several times as long for
// the subscribers that still connect.
constexpr std::int64_t kSignalRests = 4;
constexpr std::int64_t kReturnWithinNs = kSecondNs;

}  // namespace

MqttPublisher::MqttPublisher() : epoll_(epoll_create1(EPOLL_CLOEXEC)), sequences_(kMessageIds, kFree) {
    if (epoll_ < 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_create1");
    }
}

MqttPublisher::~MqttPublisher() {
    close();
    ::close(epoll_);
}

// Any change except of `retain` makes a new connection.
std::string MqttPublisher::configure(const Configure& command) {
    MqttStep step = step_of(command);
    const bool retain = std::exchange(step.retain, false);
    poll();
    if (connection_ == nullptr || !connection_->lost().empty() || step != step_) {
        close();
        step_ = step;
        connect();
    }
    topics_.clear();
    signals_.clear();
    rested_ns_ = 0;
    topic_count_ = topics_of(command);
    signalled_ = signalled_topics(command);
    retain_ = retain;
    returns_ = command.connect.has_value();
    earlier_ = {};
    refused_ = {};
    judges_ = false;
    was_silent_ = false;
    for (std::int64_t& sequence : sequences_) {
        sequence = sequence == kFree ? kFree : kNoData;
    }
    ledger_ = AckLedger();
    last_ack_ns_ = 0;
    return "";
}

void MqttPublisher::connect(std::int64_t answer_within_ns) {
    connection_ = std::make_unique<MqttConnection>(
        new_client_name(step_), step_,
        MqttConnection::Handlers{.answer = [this](int id, int code) { answer(id, code); }}, answer_within_ns);
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connection_->fd(), &event) != 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
}

void MqttPublisher::close() {
    connection_.reset();
    std::ranges::fill(sequences_, kFree);
    waiting_ = 0;
}

// With the same QoS as the data; otherwise the server could change the order. Not while the last one is on
// its way.
void MqttPublisher::probe(const Header& header) {
    if (connection_ == nullptr || !has_room() || next_signal_ < signals_.size() || connection_->asked() ||
        monotonic_ns() < rested_ns_) {
        return;
    }
    name_topics(header.publisher);
    signal_ = header;
    next_signal_ = 0;
    signalled_ns_ = monotonic_ns();
    send_signals();
    for (int waits = 0; waits < kSignalWaits && next_signal_ < signals_.size(); ++waits) {
        connection_->wait(kFullWaitMs);
        poll();
    }
}

// Sends the probe or end marker to the topics that do not have it yet, as many as there is space for.
void MqttPublisher::send_signals() {
    char message[kHeaderBytes];
    write_header(message, signal_);
    while (next_signal_ < signals_.size() && has_room()) {
        note(connection_->publish(signals_[next_signal_++], message, sizeof message, step_.qos, false),
             kNoData);
        if (signals_.size() > 1 && next_signal_ == signals_.size()) {
            connection_->ask(signals_.front());
        }
    }
}

// Names the topics: only a publisher's messages have its id.
void MqttPublisher::name_topics(Id publisher) {
    if (topics_.empty() || publisher != publisher_) {
        publisher_ = publisher;
        topics_ = topics_of(step_, publisher, topic_count_);
        signals_ = signals_of(step_, publisher, topics_, signalled_);
        next_signal_ = signals_.size();
    }
}

std::size_t MqttPublisher::send(const Chunk& chunk) {
    name_topics(chunk.publisher);
    PayloadBlock::Rooms rooms = chunk.rooms();
    std::size_t accepted = 0;
    while (accepted < chunk.count()) {
        if (!has_room()) {
            if (accepted == 0) {
                connection_->wait(kFullWaitMs);
            }
            poll();
            if (!has_room()) {
                break;
            }
        }
        const Header header = chunk.header(accepted);
        const std::span<char> message = rooms.next();
        write_header(message.data(), header);
        const int id = connection_->publish(topics_[chunk.topic(accepted)], message.data(), message.size(),
                                            step_.qos, retain_);
        if (id < 0 && id != MqttConnection::kTooLarge) {
            break;
        }
        ledger_.accept(1);
        if (id == MqttConnection::kTooLarge) {
            reject(header.sequence, reason::kTooLarge, "larger than the server's maximum packet size");
        } else if (judges_) {
            ledger_.acknowledge(header.sequence, 1);
        } else {
            note(id, static_cast<std::int64_t>(header.sequence));
        }
        ++accepted;
    }
    return accepted;
}

// A lost connection accepts nothing: the report has the messages without an answer.
bool MqttPublisher::has_room() {
    return connection_->lost().empty() && !connection_->unsent() && waiting_ < step_.max_inflight;
}

void MqttPublisher::note(int message_id, std::int64_t sequence) {
    if (message_id < 0 || step_.qos == 0) {
        return;
    }
    std::int64_t& entry = sequences_[static_cast<std::size_t>(message_id)];
    waiting_ += entry == kFree ? 1 : 0;
    entry = sequence;
}

void MqttPublisher::reject(std::uint64_t sequence, const char* why, const std::string& words) {
    if (step_.qos == 0 && !std::exchange(judges_, true) && sequence > 0) {
        ledger_.acknowledge(0, sequence);
    }
    ledger_.fail(sequence, 1);
    refused_.add(why, words, 1);
}

void MqttPublisher::answer(int message_id, int code) {
    if (step_.qos == 0) {
        return;  // the library calls back for every message that was written
    }
    const std::int64_t sequence = std::exchange(sequences_[static_cast<std::size_t>(message_id)], kFree);
    if (sequence == kFree) {
        return;
    }
    --waiting_;
    if (sequence == kNoData) {
        return;
    }
    if (rejects(code)) {
        reject(static_cast<std::uint64_t>(sequence), reason_word(code), mosquitto_reason_string(code));
    } else {
        ledger_.acknowledge(static_cast<std::uint64_t>(sequence), 1);
        last_ack_ns_ = monotonic_ns();
    }
}

// Opens another connection in place of a lost one, if the step measures connecting. Messages that the server
// has not acknowledged stay unacknowledged.
void MqttPublisher::come_back() {
    const std::int64_t now_ns = monotonic_ns();
    if (!returns_ || now_ns < again_at_ns_) {
        return;
    }
    was_silent_ = was_silent_ || connection_->was_silent();
    earlier_ = losses();
    std::unique_ptr<MqttConnection> before = std::move(connection_);
    std::ranges::fill(sequences_, kFree);
    waiting_ = 0;
    try {
        connect(kReturnWithinNs);
    } catch (const TransportError&) {
        connection_ = std::move(before);
        --earlier_.count;  // that of this connection
    }
    again_at_ns_ = monotonic_ns() + SubscriberConnection::kAgainNs;
}

void MqttPublisher::poll() {
    if (connection_ != nullptr && !connection_->lost().empty()) {
        come_back();
    }
    if (connection_ != nullptr) {
        connection_->write();
        const bool asked = connection_->asked();
        connection_->read_all();
        if (asked && !connection_->asked()) {
            rested_ns_ = monotonic_ns() + kSignalRests * (monotonic_ns() - signalled_ns_);
        }
        send_signals();
    }
}

// A PUBLISH packet: its type, its length, the topic, the message id for QoS 1 and 2, MQTT 5's properties.
// Several topics have names of different lengths.
std::optional<std::uint64_t> MqttPublisher::framed_bytes(std::uint64_t message_size) const {
    if (topic_count_ > 1) {
        return std::nullopt;
    }
    const std::uint64_t name = topics_.empty() ? 0 : topics_.front().size();
    const std::uint64_t rest =
        2 + name + (step_.qos > 0 ? 2 : 0) + (step_.protocol == "5" ? 1 : 0) + message_size;
    std::uint64_t bytes = 2 + rest;
    for (std::uint64_t length = rest >> 7; length > 0; length >>= 7) {
        ++bytes;
    }
    return bytes;
}

bool MqttPublisher::flush(double timeout_s) {
    if (connection_ == nullptr) {
        return true;
    }
    const std::int64_t deadline_ns = monotonic_ns() + to_ns(timeout_s);
    next_signal_ = signals_.size();  // after this no probe may be on its way
    poll();
    while (under_way() && connection_->lost().empty() && monotonic_ns() < deadline_ns) {
        connection_->wait(kFlushStepMs);
        poll();
    }
    return !under_way();
}

std::optional<Delivery> MqttPublisher::delivery() {
    if (step_.qos == 0 && !judges_) {
        return std::nullopt;
    }
    return Delivery{.acknowledged = ledger_.acknowledged(),
                    .failed = ledger_.failed(),
                    .last_ack_ns = last_ack_ns_,
                    .unacknowledged = ledger_.unacknowledged()};
}

std::optional<std::uint64_t> MqttPublisher::accepted() const {
    return step_.qos == 0 && !judges_ ? std::nullopt : std::optional(ledger_.acknowledged());
}

// The reason with which the server ended the connection is one, too.
FirstReason MqttPublisher::refused() const {
    FirstReason it = refused_;
    if (connection_ != nullptr && !connection_->lost().empty()) {
        it.add(connection_->lost_reason(), connection_->lost(), 0);
    }
    return it;
}

ConnectionLosses MqttPublisher::losses() const {
    if (connection_ == nullptr || connection_->lost().empty()) {
        return earlier_;
    }
    return {earlier_.count + 1, earlier_.why.empty() ? connection_->lost() : earlier_.why};
}

SystemObject MqttPublisher::report_system() const {
    const bool silent = was_silent_ || (connection_ != nullptr && connection_->was_silent());
    return written_system(MqttReport::of(losses().count > 0, silent));
}

}  // namespace hydra
