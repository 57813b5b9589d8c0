// bare-latency system=JSON subscribers=N size=BYTES seconds=S rate=R: a producer that sends each message when
// it is due, and forked consumers that only measure, on librdkafka with the configuration of Hydra's clients.
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "common/system_fields.h"
#include "kafka/config.h"
#include "window.h"

namespace {

constexpr int kWaitMs = 1000;
constexpr std::int32_t kPartition = 0;

hydra::KafkaSettings settings(const bare::Arguments& arguments) {
    return hydra::read_system<hydra::KafkaSettings>(
        hydra::SystemObject(nlohmann::json::parse(arguments.text("system"))));
}

hydra::KafkaHandle client(rd_kafka_type_t type, const hydra::Properties& config) {
    return hydra::open_kafka(type, config, [](rd_kafka_conf_t*, void*) {}, nullptr);
}

void receive(bare::Measurement& measurement, const bare::Arguments& arguments) {
    const hydra::KafkaSettings kafka = settings(arguments);
    const hydra::KafkaHandle consumer = client(RD_KAFKA_CONSUMER, hydra::consumer_config(kafka));
    rd_kafka_topic_t* topic = rd_kafka_topic_new(consumer.get(), kafka.topic.c_str(), nullptr);
    must(rd_kafka_consume_start(topic, kPartition, kafka.offsets.at(kPartition)) == 0, "consume");
    bare::Tally tally(true);
    std::thread([topic, &tally] {
        while (true) {
            rd_kafka_message_t* message = rd_kafka_consume(topic, kPartition, kWaitMs);
            if (message != nullptr) {
                if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                    tally.take(message->payload);
                }
                rd_kafka_message_destroy(message);
            }
        }
    }).detach();
    measurement.observe(tally);
    std::_Exit(0);  // while the other thread still receives
}

void publish(bare::Measurement& measurement, const bare::Arguments& arguments) {
    const hydra::KafkaSettings kafka = settings(arguments);
    const hydra::KafkaHandle producer =
        client(RD_KAFKA_PRODUCER, hydra::producer_config(kafka, arguments.size()));
    rd_kafka_topic_t* topic = rd_kafka_topic_new(producer.get(), kafka.topic.c_str(), nullptr);
    const rd_kafka_metadata_t* metadata = nullptr;
    must(rd_kafka_metadata(producer.get(), 0, topic, &metadata, 10 * kWaitMs) == 0, "metadata");
    const std::size_t size = arguments.size();
    measurement.publish(size, [&](const char* message) {
        rd_kafka_poll(producer.get(), 0);
        return rd_kafka_produce(topic, kPartition, RD_KAFKA_MSG_F_COPY, const_cast<char*>(message), size,
                                nullptr, 0, nullptr) == 0;
    });
    std::fflush(stdout);
    std::_Exit(0);  // the library's cleanup is not measured
}

}  // namespace

int main(int argc, char** argv) {
    const bare::Arguments arguments(argc, argv);
    bare::Measurement measurement(arguments);
    measurement.fork_each(arguments.subscribers(), [&](int) { receive(measurement, arguments); });
    publish(measurement, arguments);
}
