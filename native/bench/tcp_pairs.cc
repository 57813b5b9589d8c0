// tcp-pairs CLIENTS PAIRS: pairs of processes with many TCP sockets each. In each pair one process connects
// its share of the clients, and the other accepts each connection and sends one message on it. Prints how
// many seconds it took until the last client had received its message.
#include <atomic>

#include "bare.h"

namespace {

struct Shared {
    std::atomic<int> done{0};
};

void start_pair(Shared& shared, int clients) {
    const Listener listener;
    char message = 0;
    if (forked()) {
        for (int i = 0; i < clients; ++i) {
            const int socket = accept(listener.socket, nullptr, nullptr);
            must(socket >= 0 && send(socket, "m", 1, MSG_NOSIGNAL) == 1, "accept");
        }
        pause();
    }
    if (forked()) {
        std::vector<int> sockets;
        for (int i = 0; i < clients; ++i) {
            sockets.push_back(connected_to(listener.address));
        }
        for (const int socket : sockets) {
            must(recv(socket, &message, 1, 0) == 1, "recv");
        }
        ++shared.done;
        pause();
    }
    close(listener.socket);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: tcp-pairs CLIENTS PAIRS\n");
        return 2;
    }
    const int clients = std::atoi(argv[1]);
    const int pairs = std::atoi(argv[2]);
    raise_open_files();
    auto& shared = shared_memory<Shared>();
    const std::int64_t begin_ns = now_ns();
    for (int i = 0; i < pairs; ++i) {
        start_pair(shared, clients / pairs + (i < clients % pairs ? 1 : 0));
    }
    const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
    while (shared.done < pairs) {
        nanosleep(&millisecond, nullptr);
    }
    std::printf("%.4f\n", static_cast<double>(now_ns() - begin_ns) / 1e9);
    return 0;  // the other processes end with this one
}
