#include "kafka/record_batch_size.h"

#include <algorithm>
#include <bit>
#include <string>

namespace hydra {
namespace {

// baseOffset 8, batchLength 4, partitionLeaderEpoch 4, magic 1, crc 4, attributes 2, lastOffsetDelta 4,
// baseTimestamp 8, maxTimestamp 8, producerId 8, producerEpoch 2, baseSequence 4, record count 4.
constexpr std::uint64_t kBatchHeaderBytes = 61;
// attributes 1, timestamp delta 1 (batches filled within 63 ms), number of headers 0 as 1.
constexpr std::uint64_t kFixedRecordBytes = 3;
constexpr std::uint64_t kLargestBatchBytes = INT32_MAX;
// librdkafka counts the request's own header and an upper bound for the next record into batch.size; with
// this slack its batch.num.messages decides when a batch ends.
constexpr std::uint64_t kSlackBytes = 512;
// librdkafka's own limits.
constexpr std::uint64_t kMostBatchMessages = 1'000'000;
constexpr std::uint64_t kMostRequestBytes = 1'000'000'000;
constexpr std::uint64_t kMostQueueMessages = 10'000'000;
constexpr std::uint64_t kLeastRequestBytes = 1'000'000;
constexpr std::uint64_t kLeastQueueMessages = 100'000;

// Length of a non-negative number as a zigzag varint: 7 bits in each byte.
std::uint64_t varint_bytes(std::uint64_t value) {
    const auto bits = static_cast<std::uint64_t>(std::bit_width(value << 1));
    return std::max<std::uint64_t>(1, (bits + 6) / 7);
}

// Length of the longest key, a decimal number below `keys`, with its length field; that of −1 without keys.
std::uint64_t key_bytes(std::uint64_t keys) {
    const std::uint64_t longest = keys == 0 ? 0 : std::to_string(keys - 1).size();
    return varint_bytes(longest) + longest;
}

std::uint64_t record_bytes(std::uint64_t message_size, std::uint64_t offset_delta, std::uint64_t key) {
    const std::uint64_t body =
        kFixedRecordBytes + varint_bytes(offset_delta) + key + varint_bytes(message_size) + message_size;
    return varint_bytes(body) + body;
}

}  // namespace

std::uint64_t record_batch_bytes(std::uint64_t msg_batch, std::uint64_t message_size, std::uint64_t keys) {
    // More messages than this do not make the batch larger; the limit also keeps the products below in range.
    msg_batch = std::min(msg_batch, kLargestBatchBytes);
    const std::uint64_t key = key_bytes(keys);
    std::uint64_t total = kBatchHeaderBytes;
    // Offset deltas 0 … msg_batch − 1; those of one varint length make records of one length.
    for (std::uint64_t first = 0; first < msg_batch;) {
        const std::uint64_t last = std::min(std::uint64_t{1} << (7 * varint_bytes(first) - 1), msg_batch);
        total += (last - first) * record_bytes(message_size, first, key);
        first = last;
    }
    return std::min(total, kLargestBatchBytes);
}

BatchLimits batch_limits(const KafkaSettings& settings, std::uint64_t message_size, std::uint64_t keys) {
    const std::uint64_t derived = record_batch_bytes(settings.msg_batch, message_size, keys);
    const std::uint64_t batch = settings.batch_bytes.value_or(derived);
    const std::uint64_t largest = std::max(batch, record_batch_bytes(1, message_size));
    return {
        .batch_bytes = std::min(settings.batch_bytes ? batch : batch + kSlackBytes, kLargestBatchBytes),
        // If a size in bytes was set, it decides when a batch ends, as in every other implementation.
        .batch_messages =
            settings.batch_bytes ? kMostBatchMessages : std::min(settings.msg_batch, kMostBatchMessages),
        .request_bytes = std::min(std::max(kLeastRequestBytes, largest + 2 * kSlackBytes), kMostRequestBytes),
        .queue_messages = std::clamp(4 * std::min(settings.msg_batch, kMostQueueMessages),
                                     kLeastQueueMessages, kMostQueueMessages),
        .queue_kbytes =
            std::clamp<std::uint64_t>(settings.buffer_memory / 1024, (message_size + 1023) / 1024, INT32_MAX),
    };
}

}  // namespace hydra
