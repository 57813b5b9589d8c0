// bare-fanout SUBSCRIBERS WARM_SECONDS SECONDS HWM IO_THREADS: one XPUB and forked SUBs that only count,
// without headers, ledger or control channel. Prints how many messages all of them received in the window,
// and how many the publisher sent in it. Before the window it publishes for WARM_SECONDS: a connection whose
// socket buffers have grown carries up to a fifth less than a new one.
//
// The publisher waits for the subscription of every subscriber. Each subscriber counts messages between the
// start and the stop that the parent sets. It reads the clock only when it has to wait anyway, or every 1000
// messages.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kMessageBytes = 24;
constexpr int kCountBetweenLooks = 1000;

struct Shared {
    std::atomic<std::int64_t> start_ns{0};
    std::atomic<std::int64_t> stop_ns{0};
    std::atomic<std::uint64_t> received{0};
    std::atomic<std::uint64_t> sent{0};
};

std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void must(bool good, const char* what) {
    if (!good) {
        std::perror(what);
        std::exit(1);
    }
}

void* context_with(int io_threads) {
    void* context = zmq_ctx_new();
    zmq_ctx_set(context, ZMQ_IO_THREADS, io_threads);
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, 8);
    return context;
}

void set(void* socket, int option, int value) {
    must(zmq_setsockopt(socket, option, &value, sizeof value) == 0, "zmq_setsockopt");
}

int subscribe(Shared& shared, const std::string& endpoint, int hwm, int io_threads) {
    void* socket = zmq_socket(context_with(io_threads), ZMQ_SUB);
    set(socket, ZMQ_RCVHWM, hwm);
    set(socket, ZMQ_RCVTIMEO, 100);
    must(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) == 0, "subscribe");
    must(zmq_connect(socket, endpoint.c_str()) == 0, "connect");
    zmq_msg_t message;
    zmq_msg_init(&message);
    std::uint64_t received = 0;
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
            received += some;
        }
    }
    shared.received += received;
    return 0;
}

std::uint64_t publish_for(void* socket, double seconds) {
    const std::int64_t stop = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
    const char bytes[kMessageBytes] = {};
    std::uint64_t sent = 0;
    while (now_ns() < stop) {
        for (int i = 0; i < 100; ++i) {
            zmq_send(socket, bytes, sizeof bytes, ZMQ_DONTWAIT);
        }
        sent += 100;
    }
    return sent;
}

void publish(Shared& shared, void* socket, int subscribers, double warm_seconds, double seconds) {
    for (int joined = 0; joined < subscribers;) {
        char subscription[8];
        joined += zmq_recv(socket, subscription, sizeof subscription, 0) > 0;
    }
    publish_for(socket, warm_seconds);
    const std::int64_t start = now_ns();
    shared.start_ns = start;
    shared.stop_ns = start + static_cast<std::int64_t>(seconds * 1e9);
    shared.sent = publish_for(socket, seconds);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "usage: bare-fanout SUBSCRIBERS WARM_SECONDS SECONDS HWM IO_THREADS\n");
        return 2;
    }
    const int subscribers = std::atoi(argv[1]);
    const double warm_seconds = std::atof(argv[2]);
    const double seconds = std::atof(argv[3]);
    const int hwm = std::atoi(argv[4]);
    const int io_threads = std::atoi(argv[5]);
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED, "mmap");
    auto& shared = *new (memory) Shared;
    // Forked before any context; the pipe sends each of them the address.
    int port_pipe[2];
    must(pipe(port_pipe) == 0, "pipe");
    const pid_t parent = getpid();
    for (int i = 0; i < subscribers; ++i) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) {
                _exit(1);
            }
            char where[64] = {};
            must(read(port_pipe[0], where, sizeof where) == static_cast<ssize_t>(sizeof where), "read");
            _exit(subscribe(shared, where, hwm, io_threads));
        }
    }
    void* socket = zmq_socket(context_with(io_threads), ZMQ_XPUB);
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
    publish(shared, socket, subscribers, warm_seconds, seconds);
    while (wait(nullptr) > 0) {
    }
    std::printf("%llu %llu\n", static_cast<unsigned long long>(shared.received),
                static_cast<unsigned long long>(shared.sent));
    return 0;
}
