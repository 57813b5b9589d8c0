// bare-connected LIBRARY PROCESSES: forks this number of processes, each with one connection to one publisher,
// over plain TCP (LIBRARY tcp) or with libzmq (zmq). Prints how many seconds it took until each of them had
// received its first message, and the mean proportional set size of a process then (bytes).
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <zmq.h>

#include <atomic>
#include <cerrno>

#include "bare.h"

namespace {

struct Shared {
    std::atomic<int> port{0};
    std::atomic<int> received{0};
};

void* context() {
    void* made = zmq_ctx_new();
    zmq_ctx_set(made, ZMQ_MAX_SOCKETS, 8);
    return made;
}

[[noreturn]] void publish_tcp(Shared& shared) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof address;
    must(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
    must(listen(listener, 4096) == 0, "listen");
    must(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
    shared.port = ntohs(address.sin_port);
    while (true) {
        const int socket = accept(listener, nullptr, nullptr);
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
    char where[64] = {};
    std::size_t size = sizeof where;
    must(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, where, &size) == 0, "endpoint");
    shared.port = std::atoi(std::string(where).substr(std::string(where).rfind(':') + 1).c_str());
    for (int joined = 0; joined < subscribers;) {
        char subscription[8];
        joined += zmq_recv(socket, subscription, sizeof subscription, 0) > 0;
    }
    zmq_send(socket, "m", 1, 0);
    while (true) {
        pause();
    }
}

[[noreturn]] void wait_tcp(Shared& shared, int port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{.sin_family = AF_INET,
                        .sin_port = htons(static_cast<std::uint16_t>(port)),
                        .sin_addr = {htonl(INADDR_LOOPBACK)},
                        .sin_zero = {}};
    must(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connect");
    char message = 0;
    must(recv(socket, &message, 1, 0) == 1, "recv");
    ++shared.received;
    while (true) {
        pause();
    }
}

[[noreturn]] void wait_zmq(Shared& shared, int port) {
    void* socket = zmq_socket(context(), ZMQ_SUB);
    must(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) == 0, "subscribe");
    must(zmq_connect(socket, ("tcp://127.0.0.1:" + std::to_string(port)).c_str()) == 0, "connect");
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
    while (shared.port == 0) {
        nanosleep(&millisecond, nullptr);
    }
    const int port = shared.port;
    const std::int64_t begin_ns = now_ns();
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
        if (forked(&children)) {
            is_tcp ? wait_tcp(shared, port) : wait_zmq(shared, port);
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
