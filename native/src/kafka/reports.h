// The delivery reports of one producer, entered many at a time into the ledger of the epoch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/acceptance.h"
#include "common/ack_ledger.h"
#include "kafka/ack_latency.h"
#include "kafka/broker_connections.h"
#include "kafka/errors.h"
#include "kafka/handles.h"

namespace hydra {

class DeliveryReports {
  public:
    // Errors of connections are passed on to `connections`.
    explicit DeliveryReports(BrokerConnections& connections) : connections_(connections) {}

    // Begins an epoch with this many partitions: reports of earlier messages are ignored.
    void begin(std::uint64_t partitions);

    // The value that a message carries through librdkafka to its report: its sequence and a mark of the
    // epoch. Probes carry none.
    [[nodiscard]] void* tag(std::uint64_t sequence) const {
        return reinterpret_cast<void*>(mark_ << kSequenceBits | sequence);
    }

    // Takes all events in the queue, waiting at most timeout_ms for the first. Returns their number.
    std::size_t drain(rd_kafka_queue_t* queue, int timeout_ms);

    // librdkafka has accepted the next `count` messages, handed over at `now_ns` (CLOCK_MONOTONIC).
    void accept(std::uint64_t count, std::int64_t now_ns) {
        ledger_.accept(count);
        latency_.handed_over(count, now_ns);
    }

    [[nodiscard]] const AckLedger& ledger() const { return ledger_; }
    [[nodiscard]] std::int64_t last_ack_ns() const { return last_ack_ns_; }  // CLOCK_MONOTONIC; 0: none yet

    [[nodiscard]] HistogramCounts latency() const { return latency_.histogram(); }
    // The number of acknowledged batches.
    [[nodiscard]] std::uint64_t batches() const { return batches_; }

    // Why messages of the epoch were not accepted: the reason of the first rejected one, or a quota if
    // brokers only delayed their answers.
    [[nodiscard]] FirstReason refused() const;
    // A broker delayed an answer by this time because of a quota.
    void throttle(int delay_ms) { throttled_ms_ = std::max(throttled_ms_, delay_ms); }

    // The most informative of librdkafka's errors.
    [[nodiscard]] const Complaint& complaint() const { return complaint_; }
    void forget_complaint() { complaint_ = {}; }

  private:
    // 2.8 · 10¹⁴ messages in an epoch; a mark is used again after 65,535 epochs.
    static constexpr unsigned kSequenceBits = 48;
    static constexpr std::uint64_t kSequenceMask = (std::uint64_t{1} << kSequenceBits) - 1;
    static constexpr std::uint64_t kMarks = 65'535;
    static_assert(sizeof(void*) == sizeof(std::uint64_t), "a report's tag is a number of 64 bits");

    void take(rd_kafka_event_t* event);
    bool enter(const rd_kafka_message_t* const* messages, std::size_t count, std::int64_t now_ns);

    BrokerConnections& connections_;
    AckLedger ledger_;
    AckLatency latency_;
    FirstReason refused_;
    int throttled_ms_ = 0;  // the longest delay; 0: none
    std::uint64_t batches_ = 0;
    std::uint64_t mark_ = 0;  // from 1 on
    std::int64_t last_ack_ns_ = 0;
    Complaint complaint_;
};

}  // namespace hydra
