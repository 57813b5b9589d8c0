// A librdkafka consumer as a member of a consumer group.
//
// The library's background thread answers rebalances: the clients of one process need each other for a
// rebalance, and may be busy or between two steps when it happens.
#pragma once

#include <librdkafka/rdkafka.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "kafka/handles.h"
#include "kafka/membership.h"
#include "kafka/wake_fd.h"

namespace hydra {

class KafkaMember {
  public:
    KafkaMember(std::string group, const WakeFd& wake);

    // Called once with its consumer and the queue for the messages of its partitions.
    void open(rd_kafka_t* kafka, rd_kafka_queue_t* messages);

    // Begins a step at these offsets, of all partitions of the topic, which never changes; joins the group if
    // it has not joined yet. TransportError: librdkafka rejects it.
    void step(const std::string& topic, const Offsets& begin);
    [[nodiscard]] Offsets begin() const;

    // Waits until the group has assigned its partitions. TransportError: the group does not.
    void await_partitions();

    // Whether the group has assigned no partitions.
    [[nodiscard]] bool idle() const;

    // Messages of this partition before this offset have been counted; -1: none.
    void read(std::int32_t partition, std::int64_t until);

    // Commits what was read, if it is time or `now`.
    void commit(bool now);

    // Messages before these offsets that wait for this member; after it has read all of its own, for the
    // group.
    std::uint64_t undrained(const Offsets& ends);

    [[nodiscard]] KafkaMemberReport report();

    // The rebalances of this member, and what a member that follows it after a reconnection does with them.
    [[nodiscard]] Membership::Rebalances rebalances() const;
    void follow(const Membership::Rebalances& before);

    // The error on the background thread, or "".
    [[nodiscard]] std::string trouble() const;

    // Commits, gives its partitions back and closes the consumer.
    void leave();

    // Handles and destroys an event; on the background thread.
    void obey(rd_kafka_event_t* event);

  private:
    void rebalance(rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t* partitions);
    [[nodiscard]] KafkaPartitions listed(const Offsets& offsets) const;
    [[nodiscard]] Offsets committed(std::span<const std::int32_t> partitions) const;

    const std::string group_;
    const WakeFd& wake_;
    rd_kafka_t* kafka_ = nullptr;
    rd_kafka_queue_t* messages_ = nullptr;
    KafkaQueue background_;
    std::string topic_;  // set before the member joins
    Offsets begin_;

    // Both threads use the rest.
    mutable std::mutex mutex_;
    std::condition_variable decision_;
    Membership membership_;
    std::string trouble_;
};

}  // namespace hydra
