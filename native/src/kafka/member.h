// A librdkafka consumer as a member of a consumer group.
//
// Rebalances are answered on the library's background thread: the clients of a packed process need each other
// for one, and may be busy, or between two steps, when it comes.
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

    // The consumer that it is, once, and the queue that messages of its partitions are to come to.
    void open(rd_kafka_t* kafka, rd_kafka_queue_t* messages);

    // A step begins at these offsets, of all partitions of the topic, which is always the same one; joins
    // where it is not there yet.
    // TransportError: librdkafka refuses.
    void step(const std::string& topic, const Offsets& begin);
    [[nodiscard]] Offsets begin() const;

    // Waits until the group has told which partitions are its own. TransportError: it does not.
    void await_partitions();

    // Whether these are none.
    [[nodiscard]] bool idle() const;

    // Messages of this partition before this offset have been counted; -1: of none.
    void read(std::int32_t partition, std::int64_t until);

    // Tells the group how far it has read, where it is time to, or `now`.
    void commit(bool now);

    // What waits before these offsets for this member, or as far as it has read all of its own, for the
    // group.
    std::uint64_t undrained(const Offsets& ends);

    [[nodiscard]] KafkaMemberReport report() const;

    // What went wrong on the background thread, or "".
    [[nodiscard]] std::string trouble() const;

    // Commits, hands its partitions back and closes the consumer.
    void leave();

    // What happened; on the background thread. Destroys it.
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
    std::string topic_;  // set before it joins
    Offsets begin_;

    // The rest belongs to both threads.
    mutable std::mutex mutex_;
    std::condition_variable told_;
    Membership membership_;
    std::string trouble_;
};

}  // namespace hydra
