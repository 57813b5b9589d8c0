#include "kafka/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "common/transport.h"
#include "kafka/common_properties.h"
#include "kafka/record_batch_size.h"

namespace hydra {
namespace {

// Adds the properties that all clients get, unless one of the same name is set.
template <std::size_t n>
Properties with_common(const std::array<CommonProperty, n>& common, Properties it) {
    for (const CommonProperty& each : common) {
        if (rd_kafka_version() >= each.since) {
            it.emplace(each.name, each.value);
        }
    }
    return it;
}

// The user's properties replace `defaults`; properties on which figures depend replace both.
Properties common_config(const KafkaSettings& kafka, Properties defaults) {
    defaults = with_common(kCommonBoth, std::move(defaults));
    defaults.emplace("log_level", "0");  // errors are events; lines on stderr would only fill the sandbox
    for (auto& [name, value] : librdkafka_properties(kafka.properties)) {
        defaults[name] = value;
    }
    defaults["bootstrap.servers"] = kafka.bootstrap;
    defaults["client.id"] = "hydra-" + std::to_string(getpid());
    return defaults;
}

std::string decimal(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') {
        text.pop_back();
    }
    return text;
}

}  // namespace

Properties producer_config(const KafkaSettings& kafka, std::uint64_t message_size, std::uint64_t keys) {
    const BatchLimits limits = batch_limits(kafka, message_size, keys);
    Properties config = common_config(
        kafka, with_common(kCommonProducer,
                           {{"message.max.bytes", std::to_string(limits.request_bytes)},
                            {"queue.buffering.max.messages", std::to_string(limits.queue_messages)}}));
    config["acks"] = kafka.acks;
    config["linger.ms"] = decimal(kafka.linger_ms);
    config["compression.type"] = kafka.compression;
    config["batch.size"] = std::to_string(limits.batch_bytes);
    config["batch.num.messages"] = std::to_string(limits.batch_messages);
    config["enable.idempotence"] = kafka.idempotence ? "true" : "false";
    config["retries"] = std::to_string(kafka.retries.value_or(INT32_MAX));
    config["max.in.flight"] = std::to_string(kafka.max_in_flight);
    config["delivery.timeout.ms"] = std::to_string(kafka.delivery_timeout_ms);
    config["queue.buffering.max.kbytes"] = std::to_string(limits.queue_kbytes);
    return config;
}

Properties consumer_config(const KafkaSettings& kafka) {
    Properties defaults = {
        {"fetch.min.bytes", std::to_string(kafka.fetch_min_bytes)},
        {"fetch.wait.max.ms", std::to_string(kafka.fetch_wait_max_ms)},
        {"fetch.max.bytes", std::to_string(kafka.fetch_max_bytes)},
        {"max.partition.fetch.bytes", std::to_string(kafka.max_partition_fetch_bytes)},
        {"check.crcs", kafka.check_crcs ? "true" : "false"},
    };
    if (!kafka.group.empty()) {
        // Rebalances are answered even if the client's loop is busy, so its silence must not end its
        // membership.
        defaults["max.poll.interval.ms"] = "86400000";
        if (kafka.session_timeout_ms) {
            defaults["session.timeout.ms"] = std::to_string(*kafka.session_timeout_ms);
            defaults["heartbeat.interval.ms"] =
                std::to_string(std::clamp<std::uint64_t>(*kafka.session_timeout_ms / 3, 1, 3000));
        }
    }
    Properties config = common_config(kafka, with_common(kCommonConsumer, std::move(defaults)));
    // The largest message of producers; for a consumer only a lower bound of fetch.max.bytes.
    config["message.max.bytes"] = "1000";
    if (!kafka.group.empty()) {
        // Without a consumer group, librdkafka's simple consumer needs no group id, and then has neither the
        // coordinator's connection nor its thread.
        config["group.id"] = kafka.group;
        config["partition.assignment.strategy"] = "range";
    }
    config["auto.offset.reset"] = "error";
    config["enable.auto.commit"] = "false";
    config["enable.auto.offset.store"] = "false";
    return config;
}

KafkaHandle open_kafka(rd_kafka_type_t type, const Properties& config,
                       void (*prepare)(rd_kafka_conf_t*, void*), void* opaque) {
    char what[512] = "";
    KafkaConf conf(rd_kafka_conf_new());
    for (const auto& [name, value] : config) {
        if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), what, sizeof what) !=
            RD_KAFKA_CONF_OK) {
            // librdkafka's own text would show the value.
            throw TransportError("the Kafka property '" + name + "' has a value that librdkafka refuses");
        }
    }
    prepare(conf.get(), opaque);
    KafkaHandle kafka(rd_kafka_new(type, conf.get(), what, sizeof what));
    // The new client owns the configuration now. If there is no client, librdkafka 2.0 has freed the
    // interceptors in the configuration, and would free them again with it.
    static_cast<void>(conf.release());
    if (kafka == nullptr) {
        throw TransportError(std::string("librdkafka refuses the configuration: ") + what);
    }
    return kafka;
}

KafkaTopicHandle open_topic(rd_kafka_t* kafka, const std::string& name, void* opaque) {
    rd_kafka_topic_conf_t* conf = opaque == nullptr ? nullptr : rd_kafka_default_topic_conf_dup(kafka);
    if (conf != nullptr) {
        rd_kafka_topic_conf_set_opaque(conf, opaque);
    }
    KafkaTopicHandle topic(rd_kafka_topic_new(kafka, name.c_str(), conf));
    if (topic == nullptr) {
        throw TransportError("librdkafka refuses the topic '" + name +
                             "': " + rd_kafka_err2str(rd_kafka_last_error()));
    }
    return topic;
}

}  // namespace hydra
