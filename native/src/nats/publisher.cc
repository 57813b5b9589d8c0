#include "nats/publisher.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/system_fields.h"

namespace hydra {
namespace {

constexpr std::int64_t kProbesOutMs = 50;
// A server delivers the probes of thousands of topics for seconds: it gets several times as long for the
// subscribers that still connect.
constexpr std::int64_t kProbeRests = 4;
constexpr std::int64_t kFullWaitNs = 5 * kMillisecondNs;

// libnats does not report when it has handed over its last answer, so their receiver exists as long as the
// process, which has one publisher.
Answers* made_for_good() {
    static std::vector<std::unique_ptr<Answers>> all;
    return all.emplace_back(std::make_unique<Answers>()).get();
}

void on_answer(natsConnection*, natsSubscription*, natsMsg* answer, void* closure) {
    const NatsMessage owner(answer);
    const auto [epoch, sequence] = ReplySubject::read(natsMsg_GetSubject(answer));
    static_cast<Answers*>(closure)->put(epoch, sequence, refusal(answer));
}

}  // namespace

NatsPublisher::NatsPublisher() : answers_(made_for_good()) {}

NatsPublisher::~NatsPublisher() {
    close();
}

std::string NatsPublisher::configure(const Configure& command) {
    NatsStep step = nats_step(command);
    if (!connection_.reaches(step)) {
        close();
        connection_.open(step);
    }
    if (!step.stream.empty() && answering_ == nullptr) {
        subscribe_to_answers();
    }
    const auto most = static_cast<std::uint64_t>(natsConnection_GetMaxPayload(connection_.get()));
    if (command.settings.message_size > most) {
        throw TransportError("the NATS server takes messages of at most " + std::to_string(most) +
                             " bytes (max_payload)");
    }
    // The answer shows that the server has everything that was sent before.
    if (!connection_.flush(NatsConnection::kAnswerMs)) {
        throw TransportError("NATS does not answer");
    }
    connection_.begin_step();
    disconnects_ = 0;
    answers_->begin(command.epoch);
    step_ = std::move(step);
    subjects_ = topic_names(step_->subject, '.', topics_of(command));
    signalled_ = signalled_topics(command);
    rested_ns_ = 0;
    return "";
}

// Not js_PublishAsync, which keeps a copy of each message and reads each answer as JSON: together more than
// half of what a message costs.
void NatsPublisher::subscribe_to_answers() {
    natsInbox* inbox = nullptr;
    nats_check(natsInbox_Create(&inbox), "libnats");
    reply_ = ReplySubject(inbox);
    natsInbox_Destroy(inbox);
    natsSubscription* made = nullptr;
    nats_check(
        natsConnection_Subscribe(&made, connection_.get(), reply_.pattern().c_str(), on_answer, answers_),
        "NATS refuses a subscription to answers");
    answering_ = NatsSubscription(made, EndNatsSubscription{&connection_});
    // The window is their limit.
    nats_check(natsSubscription_SetPendingLimits(made, -1, -1), "the pending limits");
}

void NatsPublisher::probe(const Header& header) {
    // A probe without an answer shows that the server is slow; more probes would make it slower.
    if (!connection_.connected() || answers_->probes() > 0) {
        return;
    }
    // The answer shows that the server has delivered the last ones.
    if (signalled_ > 1 && (monotonic_ns() < rested_ns_ || !connection_.flush(kProbesOutMs))) {
        return;
    }
    const std::int64_t begin_ns = monotonic_ns();
    char message[kHeaderBytes];
    write_header(message, header);
    const char* const reply = to_stream() ? reply_.of(header.epoch, header.sequence) : nullptr;
    for (std::uint32_t topic = 0; topic < signalled_; ++topic) {
        if (reply != nullptr) {
            answers_->accept_probe();
        }
        publish(subjects_[topic], reply, message, sizeof message);
    }
    connection_.flush(kProbesOutMs);
    rested_ns_ = monotonic_ns() + kProbeRests * (monotonic_ns() - begin_ns);
}

std::size_t NatsPublisher::send(const Chunk& chunk) {
    std::size_t room = chunk.count();
    const bool wanted = answered();
    give_up_answers();
    if (wanted) {
        answers_->drain();
        const std::uint64_t window = static_cast<std::uint64_t>(step_->publish_window);
        const std::uint64_t pending = answers_->expected();
        room = std::min<std::size_t>(room, pending < window ? window - pending : 0);
    }
    if (room == 0 || !connection_.connected()) {
        // One message for each answer would cost a switch of threads for each: it waits for a chunk of
        // answers.
        const auto half = static_cast<std::size_t>(step_->publish_window) / 2;
        answers_->wait(kFullWaitNs, std::clamp<std::size_t>(half, 1, chunk.count()));
        return 0;
    }
    PayloadBlock::Rooms rooms = chunk.rooms();
    std::size_t accepted = 0;
    for (; accepted < room; ++accepted) {
        const std::span<char> message = rooms.next();
        const Header header = chunk.header(accepted);
        write_header(message.data(), header);
        const char* const reply = wanted ? reply_.of(header.epoch, header.sequence) : nullptr;
        if (!publish(subjects_[chunk.topic(accepted)], reply, message.data(), message.size())) {
            break;
        }
    }
    answers_->accept(accepted);
    return accepted;
}

// After a disconnection the messages on their way may have no answer: without this they would fill the
// window.
void NatsPublisher::give_up_answers() {
    const std::uint64_t disconnects = connection_.trouble().disconnects;
    if (disconnects != std::exchange(disconnects_, disconnects)) {
        answers_->give_up();
    }
}

// False: no space while the connection is being restored. TransportError: the server rejects the message.
bool NatsPublisher::publish(const std::string& subject, const char* reply, const char* message,
                            std::uint64_t size) {
    ++written_;
    const char* to = subject.c_str();
    const auto length = static_cast<int>(size);
    natsConnection* const connection = connection_.get();
    const natsStatus status = reply != nullptr
                                  ? natsConnection_PublishRequest(connection, to, reply, message, length)
                                  : natsConnection_Publish(connection, to, message, length);
    if (status == NATS_INSUFFICIENT_BUFFER || interrupted(status)) {
        return false;
    }
    if (status != NATS_OK) {
        throw TransportError("NATS refuses a message for " + subject + ": " + nats_words(status));
    }
    return true;
}

// `PUB SUBJECT SIZE`, the message, and the two ends of lines; the length of the reply subjects for answers is
// known only to the library, and several subjects have different lengths.
std::optional<std::uint64_t> NatsPublisher::framed_bytes(std::uint64_t message_size) const {
    if (!step_ || answered() || subjects_.size() > 1) {
        return std::nullopt;
    }
    const std::string line = "PUB " + step_->subject + " " + std::to_string(message_size) + "\r\n\r\n";
    return line.size() + message_size;
}

bool NatsPublisher::flush(double timeout_s) {
    const std::int64_t deadline_ns = monotonic_ns() + to_ns(timeout_s);
    const bool sent = connection_.flush(written_, to_ns(timeout_s) / kMillisecondNs);
    give_up_answers();
    answers_->drain();
    const auto outstanding = [this] {
        return answers_->probes() > 0 || (answered() && answers_->expected() > 0);
    };
    while (outstanding() && monotonic_ns() < deadline_ns) {
        const std::uint64_t pending = answered() ? answers_->expected() : 0;
        answers_->wait(deadline_ns - monotonic_ns(), std::max<std::uint64_t>(pending, 1));
    }
    return sent && !outstanding();
}

void NatsPublisher::close() {
    answering_.reset();
    connection_.close();
}

std::optional<Delivery> NatsPublisher::delivery() {
    if (!answered()) {
        return std::nullopt;
    }
    const AckLedger& ledger = answers_->ledger();
    return Delivery{.acknowledged = ledger.acknowledged(),
                    .failed = ledger.failed(),
                    .last_ack_ns = answers_->last_ack_ns(),
                    .unacknowledged = ledger.unacknowledged()};
}

std::optional<std::uint64_t> NatsPublisher::accepted() const {
    return answered() ? std::optional(answers_->ledger().acknowledged()) : std::nullopt;
}

// The server does not answer a message that the client may not publish.
FirstReason NatsPublisher::refused() const {
    FirstReason it = answers_->refused();
    if (const std::string words = connection_.not_permitted(); !words.empty()) {
        it.add(reason::kNotAuthorized, words, 0);
    }
    return it;
}

SystemObject NatsPublisher::report_system() const {
    return written_system(connection_.trouble());
}

}  // namespace hydra
