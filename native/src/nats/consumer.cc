#include "nats/consumer.h"

#include <algorithm>
#include <utility>

#include "common/clock.h"

namespace hydra {
namespace {

using SharedInbox = std::shared_ptr<Inbox>;

// How long a pull request waits at the server if there is no message; then it is sent again.
constexpr std::int64_t kFetchForMs = 1'000;
// How long the server keeps the consumer of a subscriber that connects again; the default of 5 s is less than
// thousands of clients need.
constexpr std::int64_t kKeptForNs = 120 * kSecondNs;

std::vector<std::string> subjects(const NatsStep& step, const TopicFilter& topics) {
    if (!topics.numbered()) {
        return {step.subject};
    }
    if (topics.wildcard) {
        return {step.subject + ".*"};
    }
    std::vector<std::string> all;
    for (const std::uint32_t topic : topics.topics) {
        all.push_back(step.subject + "." + std::to_string(topic));
    }
    return all;
}

void on_message(natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
    // If acknowledgements are configured, libnats sends one when this returns.
    const NatsMessage owner(message);
    (*static_cast<SharedInbox*>(closure))->put(message);
}

void on_complete(void* closure) {
    delete static_cast<SharedInbox*>(closure);
}

}  // namespace

NatsFeed::NatsFeed(NatsConnection& connection, const NatsStep& step, const TopicFilter& topics, bool returns)
    : connection_(connection),
      inbox_(std::make_shared<Inbox>(
          topics.topics.empty() ? 0 : static_cast<std::size_t>(step.pending_messages))) {
    const std::vector<std::string> all = subjects(step, topics);
    if (!step.stream.empty()) {
        if (all.size() > 1) {
            throw TransportError(
                "a consumer of a stream has one subject or pattern; leave out topics_per_client");
        }
        consume(step, all.front(), returns);
    } else {
        for (const std::string& subject : all) {
            subscribe(subject);
        }
    }
    for (const NatsSubscription& it : subscriptions_) {
        nats_check(natsSubscription_SetPendingLimits(it.get(), step.pending_messages, step.pending_bytes),
                   "the pending limits");
    }
    // The server's answer shows that it has the subscriptions.
    if (!connection_.flush(NatsConnection::kAnswerMs)) {
        throw TransportError("NATS does not answer");
    }
    if (!step.stream.empty() && step.consumer == NatsConsumer::pull) {
        fetching_ = std::thread(
            [this, step, subscription = subscriptions_.front().get()] { fetch(step, subscription); });
    }
}

void NatsFeed::subscribe(const std::string& subject) {
    natsSubscription* made = nullptr;
    auto closure = std::make_unique<SharedInbox>(inbox_);
    nats_check(natsConnection_Subscribe(&made, connection_.get(), subject.c_str(), on_message, closure.get()),
               "NATS refuses a subscription to " + subject);
    own(made);
    natsSubscription_SetOnCompleteCB(made, on_complete, closure.release());
}

void NatsFeed::consume(const NatsStep& step, const std::string& subject, bool returns) {
    jsOptions options;
    jsOptions_Init(&options);
    options.Wait = NatsConnection::kAnswerMs;
    jsCtx* stream = nullptr;
    nats_check(natsConnection_JetStream(&stream, connection_.get(), &options), "JetStream");
    stream_.reset(stream);
    jsSubOptions wanted;
    jsSubOptions_Init(&wanted);
    const bool acknowledged = step.ack_policy == NatsAckPolicy::explicit_;
    wanted.Stream = step.stream.c_str();
    wanted.Config.DeliverPolicy = js_DeliverByStartSequence;
    wanted.Config.OptStartSeq = step.first;
    wanted.Config.AckPolicy = acknowledged ? js_AckExplicit : js_AckNone;
    wanted.Config.MaxAckPending = acknowledged ? step.max_ack_pending : 0;
    wanted.Config.InactiveThreshold = returns ? kKeptForNs : 0;
    natsSubscription* made = nullptr;
    const std::string what = "no consumer of the stream " + step.stream;
    if (step.consumer == NatsConsumer::pull) {
        nats_check(js_PullSubscribe(&made, stream, subject.c_str(), nullptr, &options, &wanted, nullptr),
                   what);
        own(made);
        return;
    }
    auto closure = std::make_unique<SharedInbox>(inbox_);
    nats_check(
        js_Subscribe(&made, stream, subject.c_str(), on_message, closure.get(), &options, &wanted, nullptr),
        what);
    own(made);
    natsSubscription_SetOnCompleteCB(made, on_complete, closure.release());
}

void NatsFeed::own(natsSubscription* subscription) {
    subscriptions_.emplace_back(subscription, EndNatsSubscription{&connection_});
}

NatsFeed::~NatsFeed() {
    inbox_->close();
    subscriptions_.clear();
    if (fetching_.joinable()) {
        fetching_.join();
    }
}

// Runs on its own thread: libnats waits for the messages of a request in the call that makes it.
void NatsFeed::fetch(const NatsStep& step, natsSubscription* subscription) const {
    const bool acknowledged = step.ack_policy == NatsAckPolicy::explicit_;
    while (!inbox_->closed()) {
        natsMsgList messages{};
        const natsStatus status =
            natsSubscription_Fetch(&messages, subscription, step.fetch_batch, kFetchForMs, nullptr);
        for (int i = 0; i < messages.Count; ++i) {
            if (inbox_->put(messages.Msgs[i]) && acknowledged) {
                natsMsg_Ack(messages.Msgs[i], nullptr);
            }
        }
        natsMsgList_Destroy(&messages);
        const bool passes =
            status == NATS_OK || status == NATS_TIMEOUT || status == NATS_CONNECTION_DISCONNECTED;
        if (!passes && !inbox_->closed()) {
            inbox_->fail("NATS refuses a batch of " + step.stream + ": " + nats_words(status));
            return;
        }
    }
}

std::uint64_t NatsFeed::dropped() const {
    std::uint64_t all = inbox_->dropped();
    for (const NatsSubscription& it : subscriptions_) {
        std::int64_t dropped = 0;
        natsSubscription_GetDropped(it.get(), &dropped);
        all += static_cast<std::uint64_t>(std::max<std::int64_t>(dropped, 0));
    }
    return all;
}

}  // namespace hydra
