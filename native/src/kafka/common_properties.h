// The properties that every client gets with the same values, because the libraries' defaults differ.
// (Python: hydra/kafkatest/property_table.py, which has more of them; a test compares the two.)
#pragma once

#include <array>

namespace hydra {

struct CommonProperty {
    const char* name;
    const char* value;
    int since = 0;  // first librdkafka with it; earlier ones act as if it had this value
};

// common: BOTH
inline constexpr std::array kCommonBoth = {
    CommonProperty{"socket.nagle.disable", "true"},
    CommonProperty{"socket.keepalive.enable", "false"},
    CommonProperty{"socket.send.buffer.bytes", "0"},
    CommonProperty{"socket.receive.buffer.bytes", "0"},
    CommonProperty{"socket.timeout.ms", "60000"},
    CommonProperty{"connections.max.idle.ms", "540000"},
    CommonProperty{"reconnect.backoff.ms", "100"},
    CommonProperty{"reconnect.backoff.max.ms", "10000"},
    CommonProperty{"retry.backoff.ms", "100"},
    CommonProperty{"retry.backoff.max.ms", "100", 0x02030000},
    CommonProperty{"topic.metadata.refresh.interval.ms", "300000"},
    CommonProperty{"enable.metrics.push", "false", 0x02050000},
};

// common: PRODUCER
inline constexpr std::array kCommonProducer = {
    CommonProperty{"request.timeout.ms", "30000"},
    CommonProperty{"queue.buffering.max.messages", "100000"},
    CommonProperty{"queue.buffering.backpressure.threshold", "1"},
};

// common: CONSUMER
inline constexpr std::array kCommonConsumer = {
    CommonProperty{"queued.min.messages", "100000"},
    CommonProperty{"queued.max.messages.kbytes", "65536"},
    CommonProperty{"fetch.error.backoff.ms", "500"},
    CommonProperty{"fetch.queue.backoff.ms", "1000", 0x02020000},
    CommonProperty{"isolation.level", "read_uncommitted"},
};

}  // namespace hydra
