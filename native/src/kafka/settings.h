// Kafka's parts of commands and reports.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/messages/parts.h"

namespace hydra {

using Offsets = std::map<std::int32_t, std::int64_t>;  // by partition

// The object of `configure`: the producer's settings, and where the data goes.
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
    std::optional<std::uint64_t> partitions;  // the controller makes the topic; ignored here
    std::optional<std::uint64_t> replication_factor;
    bool idempotence = false;
    std::optional<std::uint64_t> retries;
    std::uint64_t max_in_flight = 5;
    std::uint64_t buffer_memory = 67'108'864;
    std::uint64_t delivery_timeout_ms = 120'000;
    std::uint64_t fetch_min_bytes = 1;
    std::uint64_t fetch_wait_max_ms = 500;
    std::uint64_t fetch_max_bytes = 52'428'800;
    std::uint64_t max_partition_fetch_bytes = 1'048'576;
    bool check_crcs = true;
    std::string group;  // consumer group; "": each subscriber gets everything
    std::optional<std::uint64_t> session_timeout_ms;
    std::string read = "live";
    bool keep = false;
    std::optional<double> kill_broker_at;
    std::vector<Offsets> topic_offsets;  // with several topics, in place of `offsets`: by topic

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
        fields.optional("partitions", it.partitions, Whole{1});
        fields.optional("replication_factor", it.replication_factor, Whole{1});
        fields.optional("idempotence", it.idempotence);
        fields.optional("retries", it.retries, Whole{0, INT32_MAX});
        fields.optional("max_in_flight", it.max_in_flight, Whole{1, 1'000'000});
        fields.optional("buffer_memory", it.buffer_memory, Whole{1'048'576});
        fields.optional("delivery_timeout_ms", it.delivery_timeout_ms, Whole{1, 900'000});
        fields.optional("fetch_min_bytes", it.fetch_min_bytes, Whole{1, 100'000'000});
        fields.optional("fetch_wait_max_ms", it.fetch_wait_max_ms, Whole{0, 300'000});
        fields.optional("fetch_max_bytes", it.fetch_max_bytes, Whole{1, INT32_MAX});
        fields.optional("max_partition_fetch_bytes", it.max_partition_fetch_bytes, Whole{1, 1'000'000'000});
        fields.optional("check_crcs", it.check_crcs);
        fields.optional("group", it.group);
        fields.optional("session_timeout_ms", it.session_timeout_ms, Whole{1, 3'600'000});
        fields.optional("read", it.read, OneOf{"live", "stored"});
        fields.optional("keep", it.keep);
        fields.optional("kill_broker_at", it.kill_broker_at, Number{0, 1});
        fields.optional("topic_offsets", it.topic_offsets);
    }
};

// The object of `finish`.
struct KafkaFinish {
    Offsets end_offsets;
    std::vector<Offsets> topic_end_offsets;  // with several topics: by topic

    static void describe(auto& it, auto& fields) {
        fields.optional("end_offsets", it.end_offsets);
        fields.optional("topic_end_offsets", it.topic_end_offsets);
    }
};

// The object of a publisher's report.
struct KafkaReport {
    std::uint64_t batch_bytes = 0;
    // Measured values; none if nothing was sent.
    std::optional<double> records_per_batch;
    std::optional<double> records_per_request;
    std::optional<std::uint64_t> wire_bytes;
    std::optional<double> compression_ratio;

    static void describe(auto& it, auto& fields) {
        fields.required("batch_bytes", it.batch_bytes);
        fields.optional("records_per_batch", it.records_per_batch, Number{0, DBL_MAX});
        fields.optional("records_per_request", it.records_per_request, Number{0, DBL_MAX});
        fields.optional("wire_bytes", it.wire_bytes);
        fields.optional("compression_ratio", it.compression_ratio, Number{0, DBL_MAX});
    }
};

// The object in the report of a subscriber that is a member of a consumer group.
struct KafkaMemberReport {
    double rebalance_ms = 0;
    std::uint64_t rebalances = 0;

    static void describe(auto& it, auto& fields) {
        fields.required("rebalance_ms", it.rebalance_ms);
        fields.required("rebalances", it.rebalances);
    }
};

}  // namespace hydra
