#include "kafka/reports.h"

#include <array>
#include <string>

#include "common/clock.h"
#include "kafka/refusal_reasons.h"

namespace hydra {
namespace {

constexpr std::size_t kAtOnce = 256;

std::uint64_t tag_of(const rd_kafka_message_t* message) {
    return reinterpret_cast<std::uint64_t>(message->_private);
}

}  // namespace

void DeliveryReports::begin(std::uint64_t partitions) {
    ledger_ = AckLedger(partitions);
    latency_.begin();
    refused_ = {};
    throttled_ms_ = 0;
    batches_ = 0;
    mark_ = mark_ % kMarks + 1;
    last_ack_ns_ = 0;
}

FirstReason DeliveryReports::refused() const {
    FirstReason it = refused_;
    if (throttled_ms_ > 0 && it.reason.empty()) {
        const std::string delay = std::to_string(throttled_ms_);
        it.add(reason::kQuota, "a broker delayed an answer by " + delay + " ms because of a quota",
               ledger_.sent() - ledger_.acknowledged() - ledger_.failed());
    }
    return it;
}

std::size_t DeliveryReports::drain(rd_kafka_queue_t* queue, int timeout_ms) {
    const std::uint64_t before = ledger_.acknowledged();
    std::size_t events = 0;
    while (const KafkaEvent event{rd_kafka_queue_poll(queue, events == 0 ? timeout_ms : 0)}) {
        take(event.get());
        ++events;
    }
    if (ledger_.acknowledged() > before) {
        last_ack_ns_ = monotonic_ns();
    }
    return events;
}

void DeliveryReports::take(rd_kafka_event_t* event) {
    switch (rd_kafka_event_type(event)) {
        case RD_KAFKA_EVENT_DR: {
            std::array<const rd_kafka_message_t*, kAtOnce> messages;
            const std::int64_t now_ns = monotonic_ns();
            bool arrived = false;
            while (const std::size_t count =
                       rd_kafka_event_message_array(event, messages.data(), messages.size())) {
                arrived |= enter(messages.data(), count, now_ns);
            }
            batches_ += arrived ? 1 : 0;
            break;
        }
        case RD_KAFKA_EVENT_ERROR:
            complaint_.take(rd_kafka_event_error(event), rd_kafka_event_error_string(event));
            connections_.note(rd_kafka_event_error(event), rd_kafka_event_error_string(event));
            break;
        default:
            break;
    }
}

// Enters the messages of one batch: runs of one partition, each acknowledged or failed as a whole. Returns
// whether messages of this epoch were acknowledged.
bool DeliveryReports::enter(const rd_kafka_message_t* const* messages, std::size_t count,
                            std::int64_t now_ns) {
    bool arrived = false;
    const std::uint64_t stride = ledger_.partitions();
    for (std::size_t i = 0; i < count;) {
        const std::uint64_t tag = tag_of(messages[i]);
        const rd_kafka_resp_err_t error = messages[i]->err;
        std::uint64_t run = 1;
        while (i + run < count && tag_of(messages[i + run]) == tag + run * stride &&
               messages[i + run]->err == error) {
            ++run;
        }
        i += run;
        if (tag >> kSequenceBits != mark_) {
            continue;  // a probe, or a message of an earlier epoch
        }
        const std::uint64_t first = tag & kSequenceMask;
        const bool good = error == RD_KAFKA_RESP_ERR_NO_ERROR;
        latency_.answered(first, run, stride, now_ns, good);
        if (good) {
            ledger_.acknowledge(first, run);
            arrived = true;
        } else {
            ledger_.fail(first, run);
            refused_.add(reason_of(error, throttled_ms_ > 0), rd_kafka_err2str(error), run);
        }
    }
    return arrived;
}

}  // namespace hydra
