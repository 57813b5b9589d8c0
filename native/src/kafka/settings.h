// Kafka's parts of commands and reports.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/messages/parts.h"

namespace hydra {

using Offsets = std::map<std::int32_t, std::int64_t>;  // by partition

// Of `configure`: the producer's settings, and where the data goes.
struct KafkaSettings {
    std::string bootstrap;
    std::string topic;
    Offsets offsets;  // where a subscriber starts, every partition of the topic
    std::map<std::string, std::string> properties;
    std::uint64_t msg_batch = 100;
    double linger_ms = 0;
    std::optional<std::uint64_t> batch_bytes;  // none: derived from msg_batch and the size of a message
    std::string compression = "none";
    std::string acks = "1";

    static void describe(auto& it, auto& fields) {
        fields.required("bootstrap", it.bootstrap);
        fields.required("topic", it.topic);
        fields.required("offsets", it.offsets);
        fields.optional("properties", it.properties);
        fields.optional("msg_batch", it.msg_batch, Whole{1});
        fields.optional("linger_ms", it.linger_ms, Number{0, 900'000});
        fields.optional("batch_bytes", it.batch_bytes, Whole{1, INT32_MAX});
        fields.optional("compression", it.compression, OneOf{"none", "gzip", "snappy", "lz4", "zstd"});
        fields.optional("acks", it.acks, OneOf{"0", "1", "all"});
    }
};

// Of `finish`.
struct KafkaFinish {
    Offsets end_offsets;

    static void describe(auto& it, auto& fields) { fields.optional("end_offsets", it.end_offsets); }
};

// Of a publisher's report.
struct KafkaReport {
    std::uint64_t batch_bytes = 0;

    static void describe(auto& it, auto& fields) { fields.required("batch_bytes", it.batch_bytes); }
};

}  // namespace hydra
