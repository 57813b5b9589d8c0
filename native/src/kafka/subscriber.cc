#include "kafka/subscriber.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/system_fields.h"
#include "kafka/config.h"
#include "kafka/errors.h"
#include "kafka/main_thread.h"

namespace hydra {
namespace {

constexpr std::int32_t kMostPartitions = 1'000'000;  // positions are kept by number

void check(const Offsets& offsets, const std::string& name) {
    if (offsets.empty()) {
        throw TransportError("configure names no partition of " + name);
    }
    if (offsets.begin()->first < 0 || offsets.rbegin()->first >= kMostPartitions) {
        throw TransportError("configure names a partition that " + name + " cannot have");
    }
}

// What a topic carries through librdkafka, which keeps it as long as it knows the name.
void* tag_of(std::uint32_t topic) {
    return reinterpret_cast<void*>(std::uintptr_t{topic} + 1);
}

}  // namespace

KafkaSubscriber::~KafkaSubscriber() {
    close();
}

void KafkaSubscriber::choose(const TopicFilter& filter) {
    if (filter.wildcard) {
        throw TransportError("a Kafka subscriber has no wildcard; leave it out to subscribe to all topics");
    }
    chosen_ = filter.topics;
}

void KafkaSubscriber::configure(const Configure& command) {
    const auto kafka = read_system<KafkaSettings>(command.system);
    std::vector<Source> sources = wanted(kafka);
    Properties config = consumer_config(kafka);
    const bool other_group =
        member_ != nullptr && (topic_name_ != kafka.topic || !member_->trouble().empty());
    connections_.begin_step();
    measured_ = command.connect.has_value();
    if (kafka_ == nullptr || config != config_ || !trouble_.empty() || other_group) {
        close();
        config_ = std::move(config);
        open();
    } else if (member_ == nullptr && started_ && stands_at(sources)) {
        return;  // a new start would discard fetched messages
    }
    trouble_.clear();
    if (member_ != nullptr) {
        probes_.clear();
        for (const PublisherEndpoint& it : command.publishers) {
            if (command.probe) {
                probes_.push_back({kProbeEpoch, it.publisher, command.epoch, 0});
            }
        }
        topic_name_ = kafka.topic;
        member_->step(topic_name_, kafka.offsets);
        return;
    }
    stop();
    topic_name_ = kafka.topic;
    for (std::size_t i = 0; i < std::min(sources.size(), sources_.size()); ++i) {
        if (sources[i].name == sources_[i].name) {
            sources[i].topic = std::move(sources_[i].topic);
        }
    }
    sources_ = std::move(sources);
    source_of_.assign(kafka.topic_offsets.size(), 0);
    for (std::uint32_t i = 0; i < sources_.size() && !chosen_.empty(); ++i) {
        source_of_[sources_[i].number] = i;
    }
    start();
}

// The topics of the command that this subscriber has, with where it starts.
std::vector<KafkaSubscriber::Source> KafkaSubscriber::wanted(const KafkaSettings& kafka) const {
    std::vector<Source> sources;
    const auto add = [&](const Offsets& offsets, std::string name, std::uint32_t number) {
        check(offsets, name);
        Source& it = sources.emplace_back(Source{.name = std::move(name), .number = number});
        it.positions.assign(static_cast<std::size_t>(offsets.rbegin()->first) + 1, 0);
        for (const auto& [partition, offset] : offsets) {
            it.partitions.push_back(partition);
            it.positions[static_cast<std::size_t>(partition)] = offset;
        }
    };
    if (chosen_.empty()) {
        add(kafka.offsets, kafka.topic, 0);
    }
    for (const std::uint32_t topic : chosen_) {
        const Offsets offsets = topic < kafka.topic_offsets.size() ? kafka.topic_offsets[topic] : Offsets();
        add(offsets, kafka.topic + "-" + std::to_string(topic), topic);
    }
    return sources;
}

void KafkaSubscriber::settle() {
    if (member_ != nullptr) {
        member_->await_partitions();
    }
}

bool KafkaSubscriber::stands_at(const std::vector<Source>& wanted) const {
    return std::ranges::equal(wanted, sources_, [](const Source& a, const Source& b) {
        return a.name == b.name && a.partitions == b.partitions && a.positions == b.positions;
    });
}

void KafkaSubscriber::open() {
    const auto group = config_.find("group.id");
    member_ = group == config_.end() ? nullptr : std::make_unique<KafkaMember>(group->second, wake_);
    kafka_ = open_kafka(
        RD_KAFKA_CONSUMER, config_,
        [](rd_kafka_conf_t* conf, void* opaque) {
            keep_from_spinning(conf);
            static_cast<KafkaSubscriber*>(opaque)->connections_.watch(conf);
            rd_kafka_conf_set_opaque(conf, opaque);
            rd_kafka_conf_set_error_cb(conf, [](rd_kafka_t*, int error, const char* what, void* subscriber) {
                static_cast<KafkaSubscriber*>(subscriber)
                    ->note(static_cast<rd_kafka_resp_err_t>(error), what);
            });
            if (static_cast<KafkaSubscriber*>(opaque)->member_ != nullptr) {
                rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT);
                rd_kafka_conf_set_background_event_cb(
                    conf, [](rd_kafka_t*, rd_kafka_event_t* event, void* subscriber) {
                        static_cast<KafkaSubscriber*>(subscriber)->member_->obey(event);
                    });
            }
        },
        this);
    errors_.reset(rd_kafka_queue_get_main(kafka_.get()));
    messages_.reset(rd_kafka_queue_new(kafka_.get()));
    rd_kafka_queue_cb_event_enable(
        errors_.get(),
        [](rd_kafka_t*, void* subscriber) {
            auto& it = *static_cast<KafkaSubscriber*>(subscriber);
            it.complained_.store(true, std::memory_order_release);
            it.wake_.wake();
        },
        this);
    complained_ = true;  // earlier errors did not call back
    wake_.wake_with(messages_.get());
    if (member_ != nullptr) {
        member_->open(kafka_.get(), messages_.get());
    }
}

void KafkaSubscriber::close() {
    if (kafka_ == nullptr) {
        return;
    }
    if (member_ != nullptr) {
        member_->leave();
    }
    stop();
    for (Source& source : sources_) {
        source.topic.reset();
    }
    connections_.end();
    rd_kafka_queue_cb_event_enable(errors_.get(), nullptr, nullptr);
    WakeFd::let_go(messages_.get());
    messages_.reset();
    errors_.reset();
    kafka_.reset();  // after this its threads call nothing
    member_.reset();
}

// Starts at the positions. If connection and topic exist already, only the next fetch is different.
void KafkaSubscriber::start() {
    started_ = true;
    for (Source& source : sources_) {
        if (source.topic == nullptr) {
            source.topic =
                open_topic(kafka_.get(), source.name, chosen_.empty() ? nullptr : tag_of(source.number));
        }
        for (const std::int32_t partition : source.partitions) {
            const std::int64_t position = source.positions[static_cast<std::size_t>(partition)];
            if (rd_kafka_consume_start_queue(source.topic.get(), partition, position, messages_.get()) != 0) {
                const std::string why = rd_kafka_err2str(rd_kafka_last_error());
                stop();
                throw TransportError("Kafka refuses partition " + std::to_string(partition) + " of " +
                                     source.name + ": " + why);
            }
        }
    }
}

// Fetched messages that were not taken are discarded.
void KafkaSubscriber::stop() {
    if (!started_) {
        return;
    }
    started_ = false;
    for (const Source& source : sources_) {
        for (std::size_t i = 0; source.topic != nullptr && i < source.partitions.size(); ++i) {
            rd_kafka_consume_stop(source.topic.get(), source.partitions[i]);
        }
    }
}

// With a callback, the library locks its queue once for all messages; with a batch, once for each.
bool KafkaSubscriber::receive(Batch& batch) {
    if (kafka_ == nullptr) {
        return false;
    }
    Taking taking{.subscriber = *this, .batch = batch};
    rd_kafka_consume_callback_queue(
        messages_.get(), 0,
        [](rd_kafka_message_t* message, void* it) {
            auto& into = *static_cast<Taking*>(it);
            into.subscriber.take(into, *message);
        },
        &taking);
    if (member_ != nullptr) {
        member_->read(taking.partition, taking.position);
        tend_member(batch);
    }
    if (complained_.exchange(false, std::memory_order_acquire)) {
        rd_kafka_poll(kafka_.get(), 0);
    }
    if (!trouble_.empty()) {
        throw TransportError("Kafka refuses to give " + topic_name_ + ": " + trouble_);
    }
    return taking.more;
}

KafkaSubscriber::Source& KafkaSubscriber::source_of(const rd_kafka_message_t& message) {
    if (sources_.size() == 1) {
        return sources_.front();
    }
    const auto tag = reinterpret_cast<std::uintptr_t>(rd_kafka_topic_opaque(message.rkt));
    return sources_[source_of_[tag - 1]];
}

// The library destroys the message.
void KafkaSubscriber::take(Taking& into, const rd_kafka_message_t& message) {
    if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        note(message.err, rd_kafka_message_errstr(&message));
        return;
    }
    into.batch.add(message.payload, message.len);
    if (member_ == nullptr) {
        source_of(message).positions[static_cast<std::size_t>(message.partition)] = message.offset + 1;
    } else {
        if (message.partition != into.partition) {
            member_->read(into.partition, into.position);
        }
        into.partition = message.partition;
        into.position = message.offset + 1;
    }
    if (into.batch.full()) {
        into.more = true;
        rd_kafka_yield(kafka_.get());  // the rest returns to the queue
    }
}

void KafkaSubscriber::tend_member(Batch& batch) {
    member_->commit(false);
    if (!probes_.empty() && batch.room() >= probes_.size() && member_->idle()) {
        // No probe can arrive without a partition, and there is nothing else that would show readiness.
        for (const Header& probe : probes_) {
            batch.add(&probe, kHeaderBytes);
        }
        probes_.clear();
    }
    if (std::string trouble = member_->trouble(); !trouble.empty()) {
        trouble_ = std::move(trouble);
    }
}

void KafkaSubscriber::note(rd_kafka_resp_err_t error, const char* what) {
    connections_.note(error, what == nullptr ? "" : what);
    if (!is_transient(error) && !(member_ != nullptr && is_group_move(error))) {
        const std::string words = what == nullptr ? "" : std::string(": ") + what;
        trouble_ = explained(error, rd_kafka_err2str(error) + words);
    }
}

void KafkaSubscriber::reconnect() {
    leave();
    open();
    if (left_at_ && member_ != nullptr) {
        member_->follow(left_with_);
        member_->step(topic_name_, *std::exchange(left_at_, std::nullopt));
        return;  // its absence ends when data flows again
    }
    start();
}

void KafkaSubscriber::leave() {
    if (member_ != nullptr) {
        left_at_ = member_->begin();
        left_with_ = member_->rebalances();
    }
    close();
}

SystemObject KafkaSubscriber::report_system() const {
    const SystemObject system_report =
        member_ == nullptr ? SystemObject{} : written_system(member_->report());
    const ConnectionLosses lost = connections_.losses();
    if (lost.count == 0) {
        return system_report;
    }
    nlohmann::json object = system_report ? system_report.json() : nlohmann::json::object();
    object["lost_connections"] = lost.count;
    object["lost_why"] = reported(lost.why);
    return SystemObject(object);
}

std::uint64_t KafkaSubscriber::undrained(const SystemObject& system) {
    const auto finish = read_system<KafkaFinish>(system);
    if (member_ != nullptr) {
        return member_->undrained(finish.end_offsets);
    }
    std::uint64_t waiting = 0;
    for (const Source& source : sources_) {
        const bool listed = source.number < finish.topic_end_offsets.size();
        for (const auto& [partition, end] :
             listed ? finish.topic_end_offsets[source.number] : finish.end_offsets) {
            const auto place = static_cast<std::size_t>(partition);
            const std::int64_t position = place < source.positions.size() ? source.positions[place] : 0;
            waiting += static_cast<std::uint64_t>(std::max<std::int64_t>(end - position, 0));
        }
    }
    return waiting;
}

}  // namespace hydra
