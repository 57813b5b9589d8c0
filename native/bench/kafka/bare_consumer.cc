// The fastest plain loop around a librdkafka consumer: it takes batches and counts.
//
// bare-consumer BOOTSTRAP TOPIC MESSAGES [name=value …]   reads partition 0 from its beginning; prints
// messages/s from the first message on, and what a message took of the CPU (µs)
#include <cstdio>
#include <cstdlib>

#include "bare_client.h"

namespace {

constexpr std::size_t kAtOnce = 1000;

}  // namespace

int main(int argc, char** argv) {
    rd_kafka_conf_t* conf = bare_conf(argc, argv, "bare-consumer BOOTSTRAP TOPIC MESSAGES [name=value …]");
    rd_kafka_t* kafka = bare_client(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_t* topic = rd_kafka_topic_new(kafka, argv[2], nullptr);
    rd_kafka_queue_t* queue = rd_kafka_queue_new(kafka);
    if (rd_kafka_consume_start_queue(topic, 0, 0, queue) != 0) {
        fail("cannot start");
    }
    const std::size_t wanted = std::strtoull(argv[3], nullptr, 10);
    rd_kafka_message_t* messages[kAtOnce];
    std::size_t got = 0;
    std::size_t first_batch = 0;
    double begin_s = 0;
    const double begin_cpu_s = cpu_s();
    const double deadline_s = now_s() + 60;
    while (got < wanted && now_s() < deadline_s) {
        // Waits for a whole batch, at most 5 ms.
        const ssize_t count = rd_kafka_consume_batch_queue(queue, 5, messages, kAtOnce);
        for (ssize_t i = 0; i < count; ++i) {
            got += messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR ? 1 : 0;
            rd_kafka_message_destroy(messages[i]);
        }
        if (begin_s == 0 && got > 0) {
            begin_s = now_s();
            first_batch = got;
        }
    }
    const double took_s = now_s() - begin_s;
    std::printf("%.0f %.4f\n", static_cast<double>(got - first_batch) / took_s,
                (cpu_s() - begin_cpu_s) * 1e6 / static_cast<double>(got));
    std::fflush(stdout);
    std::_Exit(got >= wanted ? 0 : 1);
}
