// bare-fanout SUBSCRIBERS MESSAGE_BYTES WARM_SECONDS SECONDS HWM: one XPUB and forked SUBs that only count,
// without headers, ledger or control channel, with one I/O thread each. Prints the messages/s that all of
// them received together in the window, and what a message took of a subscriber's CPU (µs). Before the window
// it publishes for WARM_SECONDS: a connection whose socket buffers have grown carries up to a fifth less than
// a new one.
//
// The publisher waits for the subscription of every subscriber. Each subscriber counts messages between the
// start and the stop that the parent sets. It reads the clock only when it has to wait anyway, or every 1000
// messages.
#include <sys/wait.h>
#include <zmq.h>

#include <atomic>
#include <string>

#include "bare.h"

namespace {

constexpr int kCountBetweenLooks = 1000;

struct Shared {
    std::atomic<std::int64_t> stop_ns{0};
    std::atomic<std::uint64_t> received{0};
    std::atomic<std::int64_t> cpu_ns{0};
};

void* small_context() {
    void* context = zmq_ctx_new();
    zmq_ctx_set(context, ZMQ_IO_THREADS, 1);
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, 8);
    return context;
}

void set(void* socket, int option, int value) {
    must(zmq_setsockopt(socket, option, &value, sizeof value) == 0, "zmq_setsockopt");
}

int subscribe(Shared& shared, const std::string& endpoint, int hwm) {
    void* socket = zmq_socket(small_context(), ZMQ_SUB);
    set(socket, ZMQ_RCVHWM, hwm);
    set(socket, ZMQ_RCVTIMEO, 100);
    must(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) == 0, "subscribe");
    must(zmq_connect(socket, endpoint.c_str()) == 0, "connect");
    zmq_msg_t message;
    zmq_msg_init(&message);
    std::uint64_t received = 0;
    std::int64_t begin_cpu_ns = 0;
    while (true) {
        std::uint64_t some = 0;
        while (some < kCountBetweenLooks && zmq_msg_recv(&message, socket, 0) >= 0) {
            ++some;
        }
        const std::int64_t now = now_ns();
        const std::int64_t stop = shared.stop_ns.load(std::memory_order_relaxed);
        if (stop != 0 && now > stop) {
            break;
        }
        if (stop != 0) {
            if (begin_cpu_ns == 0) {
                begin_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
            }
            received += some;
        }
    }
    shared.received += received;
    shared.cpu_ns += now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns;
    return 0;
}

void publish_for(void* socket, double seconds, const std::vector<char>& message) {
    const std::int64_t stop = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
    while (now_ns() < stop) {
        for (int i = 0; i < 100; ++i) {
            zmq_send(socket, message.data(), message.size(), ZMQ_DONTWAIT);
        }
    }
}

void await_subscriptions(void* socket, int subscribers) {
    for (int joined = 0; joined < subscribers;) {
        char subscription[8];
        joined += zmq_recv(socket, subscription, sizeof subscription, 0) > 0;
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "usage: bare-fanout SUBSCRIBERS MESSAGE_BYTES WARM_SECONDS SECONDS HWM\n");
        return 2;
    }
    const int subscribers = std::atoi(argv[1]);
    const std::vector<char> message(std::strtoul(argv[2], nullptr, 10));
    const double warm_seconds = std::atof(argv[3]);
    const double seconds = std::atof(argv[4]);
    const int hwm = std::atoi(argv[5]);
    auto& shared = shared_memory<Shared>();
    // Forked before any context; the pipe sends each of them the address.
    int port_pipe[2];
    must(pipe(port_pipe) == 0, "pipe");
    for (int i = 0; i < subscribers; ++i) {
        if (forked()) {
            char where[64] = {};
            must(read(port_pipe[0], where, sizeof where) == static_cast<ssize_t>(sizeof where), "read");
            _exit(subscribe(shared, where, hwm));
        }
    }
    void* socket = zmq_socket(small_context(), ZMQ_XPUB);
    set(socket, ZMQ_SNDHWM, hwm);
    set(socket, ZMQ_LINGER, 0);
    set(socket, ZMQ_BACKLOG, 4096);
    set(socket, ZMQ_XPUB_VERBOSE, 1);
    must(zmq_bind(socket, "tcp://127.0.0.1:*") == 0, "bind");
    char where[64] = {};
    std::size_t size = sizeof where;
    must(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, where, &size) == 0, "endpoint");
    for (int i = 0; i < subscribers; ++i) {
        must(write(port_pipe[1], where, sizeof where) == static_cast<ssize_t>(sizeof where), "write");
    }
    await_subscriptions(socket, subscribers);
    publish_for(socket, warm_seconds, message);
    shared.stop_ns = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
    publish_for(socket, seconds, message);
    while (wait(nullptr) > 0) {
    }
    const auto received = static_cast<double>(shared.received);
    std::printf("%.0f %.4f\n", received / seconds, static_cast<double>(shared.cpu_ns) / 1e3 / received);
    return 0;
}
