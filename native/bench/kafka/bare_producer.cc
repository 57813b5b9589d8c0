// The fastest plain loop around a librdkafka producer: it sends one message again and again and counts
// delivery reports.
//
// bare-producer BOOTSTRAP TOPIC SECONDS [name=value …]   prints messages/s, and what a
// message took of the CPU (µs)
#include <cstdio>
#include <cstdlib>

#include "bare_client.h"

namespace {

constexpr std::size_t kRecordBytes = 100;

struct Reports {
    rd_kafka_queue_t* queue;
    std::size_t good = 0;
    double last_s = 0;

    bool take(int timeout_ms) {
        rd_kafka_event_t* event = rd_kafka_queue_poll(queue, timeout_ms);
        if (event == nullptr) {
            return false;
        }
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR) {
            // The messages of an event succeed or fail together; reading one removes it from the count.
            const std::size_t count = rd_kafka_event_message_count(event);
            const rd_kafka_message_t* first = rd_kafka_event_message_next(event);
            if (first != nullptr && first->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                good += count;
                last_s = now_s();
            }
        }
        rd_kafka_event_destroy(event);
        return true;
    }
};

}  // namespace

int main(int argc, char** argv) {
    rd_kafka_conf_t* conf = bare_conf(argc, argv, "bare-producer BOOTSTRAP TOPIC SECONDS [name=value …]");
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
    rd_kafka_t* kafka = bare_client(RD_KAFKA_PRODUCER, conf);
    rd_kafka_topic_t* topic = rd_kafka_topic_new(kafka, argv[2], nullptr);
    const rd_kafka_metadata_t* metadata = nullptr;
    if (rd_kafka_metadata(kafka, 0, topic, &metadata, 10'000) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        fail("no answer");
    }
    rd_kafka_metadata_destroy(metadata);

    Reports reports{.queue = rd_kafka_queue_get_main(kafka)};
    char record[kRecordBytes] = {};
    const double begin_s = now_s();
    const double begin_cpu_s = cpu_s();
    const double end_s = begin_s + std::atof(argv[3]);
    std::size_t sent = 0;
    while (now_s() < end_s) {
        for (int i = 0; i < 1000; ++i) {
            if (rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, record, sizeof record, nullptr, 0, nullptr) ==
                0) {
                ++sent;
            } else {
                reports.take(5);
            }
        }
        while (reports.take(0)) {
        }
    }
    while (reports.good < sent && now_s() < end_s + 10) {
        reports.take(100);
    }
    const double took_s = reports.last_s - begin_s;
    const auto good = static_cast<double>(reports.good);
    std::printf("%.0f %.4f\n", good / took_s, (cpu_s() - begin_cpu_s) * 1e6 / good);
    std::fflush(stdout);
    std::_Exit(reports.good == sent ? 0 : 1);  // the library's cleanup is not measured
}
