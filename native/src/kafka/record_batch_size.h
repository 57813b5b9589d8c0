// The bytes of a batch of messages in Kafka's record batch format, version 2, and the limits with which
// librdkafka makes such batches. Pure. See docs/kafka.md. (Python: hydra/kafkatest/record_batch_size.py.)
#pragma once

#include <cstdint>

#include "kafka/settings.h"

namespace hydra {

// Length of an uncompressed batch of msg_batch messages of message_size bytes, with its header; at most
// 2³¹ − 1. With keys, each message has the longest one.
std::uint64_t record_batch_bytes(std::uint64_t msg_batch, std::uint64_t message_size, std::uint64_t keys = 0);

struct BatchLimits {
    std::uint64_t batch_bytes;     // batch.size
    std::uint64_t batch_messages;  // batch.num.messages
    std::uint64_t request_bytes;   // message.max.bytes: holds a batch, or a message, and its frame
    std::uint64_t queue_messages;  // queue.buffering.max.messages
    std::uint64_t queue_kbytes;    // queue.buffering.max.kbytes: always holds a message
};

BatchLimits batch_limits(const KafkaSettings& settings, std::uint64_t message_size, std::uint64_t keys = 0);

}  // namespace hydra
