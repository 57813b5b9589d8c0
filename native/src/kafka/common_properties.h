// The properties that every client gets with the same values, because the libraries' defaults differ.
// (Python: hydra/kafkatest/property_table.py, which has more of them; a test compares the two.)
#pragma once

#include <array>

namespace hydra {

struct Alike {
    const char* name;
    const char* value;
    int since = 0;  // first librdkafka with it; earlier ones act as if it had this value
};

// alike: BOTH
inline constexpr std::array kAlikeBoth = {
    Alike{"socket.nagle.disable", "true"},
    Alike{"socket.keepalive.enable", "false"},
    Alike{"socket.send.buffer.bytes", "0"},
    Alike{"socket.receive.buffer.bytes", "0"},
    Alike{"socket.timeout.ms", "60000"},
    Alike{"connections.max.idle.ms", "540000"},
    Alike{"reconnect.backoff.ms", "100"},
    Alike{"reconnect.backoff.max.ms", "10000"},
    Alike{"retry.backoff.ms", "100"},
    Alike{"retry.backoff.max.ms", "100", 0x02030000},
    Alike{"topic.metadata.refresh.interval.ms", "300000"},
    Alike{"enable.metrics.push", "false", 0x02050000},
};

// alike: PRODUCER
inline constexpr std::array kAlikeProducer = {
    Alike{"request.timeout.ms", "30000"},
    Alike{"queue.buffering.max.messages", "100000"},
    Alike{"queue.buffering.backpressure.threshold", "1"},
};

// alike: CONSUMER
inline constexpr std::array kAlikeConsumer = {
    Alike{"queued.min.messages", "100000"},       Alike{"queued.max.messages.kbytes", "65536"},
    Alike{"fetch.error.backoff.ms", "500"},       Alike{"fetch.queue.backoff.ms", "1000", 0x02020000},
    Alike{"isolation.level", "read_uncommitted"},
};

}  // namespace hydra
