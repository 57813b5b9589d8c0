// bare-connected LIBRARY PROCESSES: forks this number of processes, each with one connection to one
// publisher, over plain TCP (LIBRARY tcp) or with libzmq (zmq). Prints how many seconds it took until each of
// them had received its first message, and the mean proportional set size of a process then (bytes).
#include <zmq.h>

#include <atomic>
#include <cerrno>

#include "bare.h"

namespace {

// The publisher writes its address, and then that it listens.
struct Shared {
    sockaddr_in address{};
    char endpoint[64] = {};
    std::atomic<bool> listens{false};
    std::atomic<int> received{0};
};

void* context() {
    void* made = zmq_ctx_new();
    zmq_ctx_set(made, ZMQ_MAX_SOCKETS, 8);
    return made;
}

[[noreturn]] void publish_tcp(Shared& shared) {
    const Listener listener;
    shared.address = listener.address;
    shared.listens = true;
    while (true) {
        const int socket = accept(listener.socket, nullptr, nullptr);
        must(socket >= 0 && send(socket, "m", 1, MSG_NOSIGNAL) == 1, "accept");
    }
}

[[noreturn]] void publish_zmq(Shared& shared, int subscribers) {
    void* socket = zmq_socket(context(), ZMQ_XPUB);
    const int backlog = 4096;
    zmq_setsockopt(socket, ZMQ_BACKLOG, &backlog, sizeof backlog);
    const int verbose = 1;
    zmq_setsockopt(socket, ZMQ_XPUB_VERBOSE, &verbose, sizeof verbose);
    must(zmq_bind(socket, "tcp://127.0.0.1:*") == 0, "bind");
    std::size_t size = sizeof shared.endpoint;
    must(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, shared.endpoint, &size) == 0, "endpoint");
    shared.listens = true;
    for (int joined = 0; joined < subscribers;) {
        char subscription[8];
        joined += zmq_recv(socket, subscription, sizeof subscription, 0) > 0;
    }
    zmq_send(socket, "m", 1, 0);
    while (true) {
        pause();
    }
}

[[noreturn]] void wait_tcp(Shared& shared) {
    const int socket = connected_to(shared.address);
    char message = 0;
    must(recv(socket, &message, 1, 0) == 1, "recv");
    ++shared.received;
    while (true) {
        pause();
    }
}

[[noreturn]] void wait_zmq(Shared& shared) {
    void* socket = zmq_socket(context(), ZMQ_SUB);
    must(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) == 0, "subscribe");
    must(zmq_connect(socket, shared.endpoint) == 0, "connect");
    char message = 0;
    must(zmq_recv(socket, &message, 1, 0) == 1, "recv");
    ++shared.received;
    while (true) {
        pause();
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string library = argc == 3 ? argv[1] : "";
    if (library != "tcp" && library != "zmq") {
        std::fprintf(stderr, "usage: bare-connected tcp|zmq PROCESSES\n");
        return 2;
    }
    const bool is_tcp = library == "tcp";
    const int processes = std::atoi(argv[2]);
    raise_open_files();
    auto& shared = shared_memory<Shared>();
    std::vector<pid_t> publisher;
    if (forked(&publisher)) {
        is_tcp ? publish_tcp(shared) : publish_zmq(shared, processes);
    }
    const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
    while (!shared.listens) {
        nanosleep(&millisecond, nullptr);
    }
    const std::int64_t begin_ns = now_ns();
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
        if (forked(&children)) {
            is_tcp ? wait_tcp(shared) : wait_zmq(shared);
        }
    }
    while (shared.received < processes) {
        nanosleep(&millisecond, nullptr);
    }
    const double took_s = static_cast<double>(now_ns() - begin_ns) / 1e9;
    std::printf("%.4f %.0f\n", took_s, mean_pss_bytes(children));
    std::fflush(stdout);
    publisher.insert(publisher.end(), children.begin(), children.end());
    for (const pid_t each : publisher) {
        kill(each, SIGKILL);
    }
    return 0;
}
