// Forked librdkafka consumers that only count, one to a process.
//
// bare-consumers PROCESSES BOOTSTRAP TOPIC MESSAGES [name=value …]   each consumer connects and waits at the
// end of partition 0, as Hydra's clients do before a step. When all wait, each reads the same MESSAGES
// messages from the beginning. Prints the messages/s of all together, from the first message of any of them
// to the last, what a message took of a consumer's CPU (µs), and the mean proportional set size of a waiting
// process (bytes).
#include <sys/wait.h>

#include <atomic>
#include <functional>

#include "../bare.h"
#include "bare_client.h"

namespace {

constexpr std::size_t kAtOnce = 1000;
constexpr std::int64_t kConnectedWithinNs = 300'000'000'000;
constexpr std::int64_t kReadWithinNs = 100'000'000'000;
// Forked consumers that may be connecting at a time, as many as Hydra's: if a broker answers more of them too
// late, all begin again.
constexpr int kForkWindow = 128;

struct Shared {
    std::atomic<int> connected{0};
    std::atomic<std::uint64_t> received{0};
    std::atomic<std::int64_t> first_ns{INT64_MAX};
    std::atomic<std::int64_t> last_ns{0};
    std::atomic<std::int64_t> cpu_ns{0};
};

template <class Better>
void replace_if(std::atomic<std::int64_t>& value, std::int64_t fresh, Better better) {
    std::int64_t old = value;
    while (better(fresh, old) && !value.compare_exchange_weak(old, fresh)) {
    }
}

int consume(Shared& shared, const Announcement<std::int64_t>& deadline, int argc, char** argv) {
    rd_kafka_t* kafka = bare_client(RD_KAFKA_CONSUMER, bare_conf(argc, argv, "bare-consumers"));
    rd_kafka_topic_t* topic = rd_kafka_topic_new(kafka, argv[2], nullptr);
    std::int64_t low = 0;
    std::int64_t high = 0;
    if (rd_kafka_query_watermark_offsets(kafka, argv[2], 0, &low, &high, 60'000) != 0) {
        fail("not connected");
    }
    rd_kafka_queue_t* queue = rd_kafka_queue_new(kafka);
    if (rd_kafka_consume_start_queue(topic, 0, high, queue) != 0) {
        fail("cannot wait");
    }
    ++shared.connected;
    const std::int64_t deadline_ns = deadline.await();
    const std::int64_t begin_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    rd_kafka_consume_stop(topic, 0);
    if (rd_kafka_consume_start_queue(topic, 0, low, queue) != 0) {
        fail("cannot start");
    }
    const std::size_t wanted = std::strtoull(argv[3], nullptr, 10);
    rd_kafka_message_t* messages[kAtOnce];
    std::size_t got = 0;
    while (got < wanted && now_ns() < deadline_ns) {
        const ssize_t count = rd_kafka_consume_batch_queue(queue, 100, messages, kAtOnce);
        for (ssize_t i = 0; i < count; ++i) {
            if (messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR && got++ == 0) {
                replace_if(shared.first_ns, now_ns(), std::less<>());
            }
            rd_kafka_message_destroy(messages[i]);
        }
    }
    replace_if(shared.last_ns, now_ns(), std::greater<>());
    shared.cpu_ns += now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns;
    shared.received += got;
    return got >= wanted ? 0 : 1;
}

// Waits until this number of consumers is connected.
void await_connected(const Shared& shared, int consumers, std::int64_t until_ns) {
    const timespec a_little{.tv_sec = 0, .tv_nsec = 1'000'000};
    while (shared.connected < consumers) {
        if (waitpid(-1, nullptr, WNOHANG) != 0) {
            fail("a consumer has ended before it was connected");
        }
        if (now_ns() > until_ns) {
            fail("only " + std::to_string(shared.connected.load()) + " consumers were connected in time");
        }
        nanosleep(&a_little, nullptr);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) {
        fail("usage: bare-consumers PROCESSES BOOTSTRAP TOPIC MESSAGES [name=value …]");
    }
    const int processes = std::atoi(argv[1]);
    auto& shared = shared_memory<Shared>();
    const Announcement<std::int64_t> deadline;
    std::vector<pid_t> children;
    const std::int64_t connected_by_ns = now_ns() + kConnectedWithinNs;
    for (int i = 0; i < processes; ++i) {
        await_connected(shared, i - kForkWindow + 1, connected_by_ns);
        if (forked(&children)) {
            std::_Exit(
                consume(shared, deadline, argc - 1, argv + 1));  // the library's cleanup is not measured
        }
    }
    await_connected(shared, processes, connected_by_ns);
    const double pss_bytes = mean_pss_bytes(children);
    deadline.make(now_ns() + kReadWithinNs, processes);
    int failed = 0;
    for (int status = 0; wait(&status) > 0;) {
        failed += status != 0 ? 1 : 0;
    }
    if (failed > 0) {
        fail(std::to_string(failed) + " consumers did not read everything");
    }
    const auto received = static_cast<double>(shared.received);
    const double took_s = static_cast<double>(shared.last_ns - shared.first_ns) / 1e9;
    std::printf("%.0f %.4f %.0f\n", received / took_s, static_cast<double>(shared.cpu_ns) / 1e3 / received,
                pss_bytes);
    return 0;
}
