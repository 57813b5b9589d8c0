#include "nats/consumer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
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
// How long `waiting` waits for the server.
constexpr std::int64_t kAskForMs = 200;
constexpr const char* kNoConsumer = "no consumer of the stream ";

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

void on_message(natsConnection*, natsSubscription* subscription, natsMsg* message, void* closure) {
    // If acknowledgements are configured, libnats sends one when this returns.
    const NatsMessage owner(message);
    int waiting = 0;
    natsSubscription_GetPending(subscription, &waiting, nullptr);
    (*static_cast<SharedInbox*>(closure))->put(message, waiting > 0);
}

void on_complete(void* closure) {
    delete static_cast<SharedInbox*>(closure);
}

}  // namespace

bool has_one_thread(const NatsStep& step, const TopicFilter& topics) {
    return step.stream.empty() && !topics.topics.empty();
}

NatsFeed::NatsFeed(NatsConnection& connection, const NatsStep& step, const TopicFilter& topics, bool returns)
    : connection_(connection),
      inbox_(std::make_shared<Inbox>(
          has_one_thread(step, topics) ? static_cast<std::size_t>(step.pending_messages) : 0)),
      stream_name_(step.stream) {
    const std::vector<std::string> all = subjects(step, topics);
    if (!step.stream.empty()) {
        consume(step, all, !topics.topics.empty(), returns);
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

void NatsFeed::consume(const NatsStep& step, const std::vector<std::string>& subjects, bool filters,
                       bool returns) {
    const std::string& subject = subjects.front();
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
    wanted.Config.AckPolicy = acknowledged ? js_AckExplicit : js_AckNone;
    if (filters) {
        consumer_ = made_consumer(step, subjects, returns);
        wanted.Consumer = consumer_.c_str();
    } else {
        wanted.Config.DeliverPolicy = js_DeliverByStartSequence;
        wanted.Config.OptStartSeq = step.first;
        wanted.Config.MaxAckPending = acknowledged ? step.max_ack_pending : 0;
        wanted.Config.InactiveThreshold = returns ? kKeptForNs : 0;
    }
    natsSubscription* made = nullptr;
    const std::string what = kNoConsumer + step.stream;
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

// Makes a consumer of these subjects, and returns its name: libnats 3.4 knows no consumer of several.
std::string NatsFeed::made_consumer(const NatsStep& step, const std::vector<std::string>& subjects,
                                    bool returns) const {
    nlohmann::json config{{"deliver_policy", "by_start_sequence"},
                          {"opt_start_seq", step.first},
                          {"ack_policy", words(step.ack_policy)[static_cast<std::size_t>(step.ack_policy)]},
                          {"replay_policy", "instant"}};
    // Servers before 2.10 know the first name only, and ignore the second one.
    if (subjects.size() == 1) {
        config["filter_subject"] = subjects.front();
    } else {
        config["filter_subjects"] = subjects;
    }
    if (step.ack_policy == NatsAckPolicy::explicit_) {
        config["max_ack_pending"] = step.max_ack_pending;
    }
    if (returns) {
        config["inactive_threshold"] = kKeptForNs;
    }
    if (step.consumer == NatsConsumer::push) {
        natsInbox* inbox = nullptr;
        nats_check(natsInbox_Create(&inbox), "libnats");
        config["deliver_subject"] = std::string(inbox);
        natsInbox_Destroy(inbox);
    }
    const std::string request = nlohmann::json{{"stream_name", step.stream}, {"config", config}}.dump();
    natsMsg* reply = nullptr;
    nats_check(natsConnection_RequestString(&reply, connection_.get(),
                                            ("$JS.API.CONSUMER.CREATE." + step.stream).c_str(),
                                            request.c_str(), NatsConnection::kAnswerMs),
               kNoConsumer + step.stream);
    const NatsMessage owner(reply);
    const std::string_view text(natsMsg_GetData(reply),
                                static_cast<std::size_t>(natsMsg_GetDataLength(reply)));
    const nlohmann::json answer = nlohmann::json::parse(text, nullptr, false);
    const auto part = [&answer](const char* name) {
        return answer.is_object() && answer.contains(name) ? answer[name] : nlohmann::json::object();
    };
    if (!part("name").is_string()) {
        throw TransportError(kNoConsumer + step.stream + ": " + part("error").dump());
    }
    const std::string name = part("name").get<std::string>();
    if (subjects.size() > 1 && !part("config").contains("filter_subjects")) {
        delete_consumer(name);
        throw TransportError(kNoConsumer + step.stream +
                             ": several subjects need nats-server 2.10 or newer, or mode core");
    }
    return name;
}

void NatsFeed::delete_consumer(const std::string& consumer) const {
    jsOptions options;
    jsOptions_Init(&options);
    options.Wait = NatsConnection::kAnswerMs;
    js_DeleteConsumer(stream_.get(), stream_name_.c_str(), consumer.c_str(), &options, nullptr);
}

std::uint64_t NatsFeed::waiting() {
    const std::int64_t now_ns = monotonic_ns();
    if (now_ns < ask_at_ns_) {
        return 1;
    }
    jsOptions options;
    jsOptions_Init(&options);
    options.Wait = kAskForMs;
    jsConsumerInfo* info = nullptr;
    if (js_GetConsumerInfo(&info, stream_.get(), stream_name_.c_str(), consumer_.c_str(), &options,
                           nullptr) != NATS_OK) {
        ask_at_ns_ = now_ns + kSecondNs;
        return 1;  // it is not known that nothing waits
    }
    const std::uint64_t delivered = std::max<std::uint64_t>(info->Delivered.Consumer, inbox_->delivered());
    const std::uint64_t waiting = info->NumPending + delivered - inbox_->delivered();
    jsConsumerInfo_Destroy(info);
    return waiting;
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
    if (filters() && connection_.connected()) {
        delete_consumer(consumer_);
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
            if (inbox_->put(messages.Msgs[i], i + 1 < messages.Count) && acknowledged) {
                natsMsg_Ack(messages.Msgs[i], nullptr);
            }
        }
        natsMsgList_Destroy(&messages);
        const bool passes = status == NATS_OK || status == NATS_TIMEOUT || interrupted(status);
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
