#include "kafka/member.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/transport.h"
#include "kafka/errors.h"

namespace hydra {
namespace {

// Less than the controller's time limit for an answer.
constexpr std::chrono::seconds kJoinWithin{25};
constexpr std::chrono::seconds kLeaveWithin{3};
constexpr std::chrono::milliseconds kLookEvery{2};
constexpr int kRequestMs = 1000;

}  // namespace

KafkaMember::KafkaMember(std::string group, const WakeFd& wake)
    : group_(std::move(group)), wake_(wake), membership_(monotonic_ns()) {}

void KafkaMember::open(rd_kafka_t* kafka, rd_kafka_queue_t* messages) {
    kafka_ = kafka;
    messages_ = messages;
    background_.reset(rd_kafka_queue_get_background(kafka));
    const KafkaQueue events(rd_kafka_queue_get_consumer(kafka));
    rd_kafka_queue_forward(events.get(), background_.get());
}

void KafkaMember::step(const std::string& topic, const Offsets& begin) {
    begin_ = begin;
    Offsets moved;
    {
        const std::lock_guard lock(mutex_);
        moved = membership_.step(begin, monotonic_ns());
    }
    if (topic_.empty()) {
        topic_ = topic;
        const KafkaPartitions topics(rd_kafka_topic_partition_list_new(1));
        rd_kafka_topic_partition_list_add(topics.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
        if (const auto error = rd_kafka_subscribe(kafka_, topics.get())) {
            throw TransportError("Kafka refuses to subscribe to " + topic + ": " + rd_kafka_err2str(error));
        }
    } else if (!moved.empty()) {
        // A new assignment would conflict with the group's own. If a partition cannot be moved yet, it is
        // read from an earlier offset, and nothing is missed.
        const KafkaPartitions list = listed(moved);
        rd_kafka_error_t* const error = rd_kafka_seek_partitions(kafka_, list.get(), kRequestMs);
        if (error != nullptr) {
            rd_kafka_error_destroy(error);
        }
    }
}

Offsets KafkaMember::begin() const {
    return begin_;
}

void KafkaMember::await_partitions() {
    std::unique_lock lock(mutex_);
    const bool is_decided =
        decision_.wait_for(lock, kJoinWithin, [this] { return membership_.assigned() || !trouble_.empty(); });
    if (!trouble_.empty()) {
        throw TransportError("the consumer group " + group_ + " rejects this client: " + trouble_);
    }
    if (!is_decided) {
        throw TransportError("the consumer group " + group_ + " assigned no partitions within " +
                             std::to_string(kJoinWithin.count()) + " s");
    }
}

bool KafkaMember::idle() const {
    const std::lock_guard lock(mutex_);
    return membership_.idle();
}

void KafkaMember::read(std::int32_t partition, std::int64_t until) {
    if (partition >= 0) {
        const std::lock_guard lock(mutex_);
        membership_.read_until(partition, until);
    }
}

void KafkaMember::commit(bool now) {
    // Locked until librdkafka has accepted the offsets, which does not wait: no thread commits offsets older
    // than those that the other thread has read since.
    const std::lock_guard lock(mutex_);
    const Offsets offsets = membership_.uncommitted(now, monotonic_ns());
    if (offsets.empty()) {
        return;
    }
    const KafkaPartitions list = listed(offsets);
    // The result of the commit arrives as an event.
    if (rd_kafka_commit_queue(kafka_, list.get(), background_.get(), nullptr, nullptr) !=
        RD_KAFKA_RESP_ERR_NO_ERROR) {
        membership_.refused(monotonic_ns());
    }
}

std::uint64_t KafkaMember::undrained(const Offsets& ends) {
    std::vector<std::int32_t> asked;
    {
        const std::lock_guard lock(mutex_);
        if (const std::uint64_t own = membership_.own_left(ends); own > 0) {
            return own;
        }
        asked = membership_.to_ask(ends, monotonic_ns());
    }
    commit(true);
    const Offsets found = committed(asked);
    const std::lock_guard lock(mutex_);
    membership_.learn(found, ends);
    return membership_.others_left();
}

Membership::Rebalances KafkaMember::rebalances() const {
    const std::lock_guard lock(mutex_);
    return membership_.rebalances();
}

void KafkaMember::follow(const Membership::Rebalances& before) {
    const std::lock_guard lock(mutex_);
    membership_.follow(before);
}

KafkaMemberReport KafkaMember::report() {
    const std::lock_guard lock(mutex_);
    return membership_.report();
}

std::string KafkaMember::trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
}

void KafkaMember::leave() {
    if (kafka_ != nullptr) {
        commit(true);
        // Otherwise it would wait for a dead coordinator until the session has timed out.
        rd_kafka_error_t* const error = rd_kafka_consumer_close_queue(kafka_, background_.get());
        const auto deadline = std::chrono::steady_clock::now() + kLeaveWithin;
        while (error == nullptr && rd_kafka_consumer_closed(kafka_) == 0 &&
               std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(kLookEvery);
        }
        if (error != nullptr) {
            rd_kafka_error_destroy(error);
        }
        background_.reset();
        kafka_ = nullptr;
    }
}

void KafkaMember::obey(rd_kafka_event_t* event) {
    const KafkaEvent owned(event);
    const rd_kafka_resp_err_t error = rd_kafka_event_error(event);
    switch (rd_kafka_event_type(event)) {
        case RD_KAFKA_EVENT_REBALANCE:
            rebalance(error, rd_kafka_event_topic_partition_list(event));
            break;
        case RD_KAFKA_EVENT_OFFSET_COMMIT:
            if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
                const std::lock_guard lock(mutex_);
                membership_.refused(monotonic_ns());
            }
            break;
        case RD_KAFKA_EVENT_ERROR:
            if (!is_transient(error) && !is_group_move(error)) {
                {
                    const std::lock_guard lock(mutex_);
                    trouble_ = explained(error, rd_kafka_event_error_string(event));
                }
                decision_.notify_all();
                wake_.wake();
            }
            break;
        default:
            break;
    }
}

void KafkaMember::rebalance(rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t* partitions) {
    if (error != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        commit(true);  // the library answers the group after this commit
        {
            const std::lock_guard lock(mutex_);
            membership_.lost(monotonic_ns());
        }
        rd_kafka_assign(kafka_, nullptr);
        return;
    }
    std::vector<std::int32_t> assigned;
    for (int i = 0; i < partitions->cnt; ++i) {
        assigned.push_back(partitions->elems[i].partition);
        // Forwarded before the first fetch, its messages never go to the queue of events.
        const KafkaQueue queue(
            rd_kafka_queue_get_partition(kafka_, partitions->elems[i].topic, partitions->elems[i].partition));
        rd_kafka_queue_forward(queue.get(), messages_);
    }
    const Offsets found = committed(assigned);
    KafkaPartitions list;
    {
        const std::lock_guard lock(mutex_);
        list = listed(membership_.given(assigned, found, monotonic_ns()));
    }
    rd_kafka_assign(kafka_, list.get());
    decision_.notify_all();
    wake_.wake();
}

KafkaPartitions KafkaMember::listed(const Offsets& offsets) const {
    KafkaPartitions list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())));
    for (const auto& [partition, offset] : offsets) {
        rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), partition)->offset = offset;
    }
    return list;
}

// The group's committed offsets. If they are unknown, there are none: a message that is read twice is
// counted.
Offsets KafkaMember::committed(std::span<const std::int32_t> partitions) const {
    Offsets found;
    if (partitions.empty()) {
        return found;
    }
    Offsets asked;
    for (const std::int32_t partition : partitions) {
        asked[partition] = RD_KAFKA_OFFSET_INVALID;
    }
    const KafkaPartitions list = listed(asked);
    if (rd_kafka_committed(kafka_, list.get(), kRequestMs) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        for (int i = 0; i < list->cnt; ++i) {
            if (list->elems[i].offset >= 0) {
                found[list->elems[i].partition] = list->elems[i].offset;
            }
        }
    }
    return found;
}

}  // namespace hydra
