// tcp-fanout SUBSCRIBERS MESSAGE_BYTES SECONDS SEND_BYTES: what a publisher's process can send to the
// processes of its subscribers over TCP at all. One process writes to each socket that takes data, SEND_BYTES
// with each send() (at least one message); forked processes read up to 64 KiB at a time and count bytes.
// Prints the messages/s that all of them received together in the window.
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "bare.h"

namespace {

constexpr std::size_t kReadBytes = 65'536;
constexpr std::int64_t kWarmNs = 500'000'000;
constexpr int kSendsAtOnce = 16;

struct Shared {
    std::atomic<bool> counts{false};
    std::atomic<std::uint64_t> bytes{0};
};

int receive(Shared& shared, int socket) {
    std::vector<char> data(kReadBytes);
    std::uint64_t bytes = 0;
    for (ssize_t size = 0; (size = recv(socket, data.data(), data.size(), 0)) > 0;) {
        bytes += shared.counts.load(std::memory_order_relaxed) ? static_cast<std::uint64_t>(size) : 0;
    }
    shared.bytes += bytes;
    return 0;
}

struct Publisher {
    int ready = epoll_create1(0);
    std::vector<char> data;

    void add(int socket) const {
        const int on = 1;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        epoll_event event{.events = EPOLLOUT, .data = {.fd = socket}};
        must(epoll_ctl(ready, EPOLL_CTL_ADD, socket, &event) == 0, "epoll_ctl");
    }

    void send_for(std::int64_t duration_ns) const {
        const std::int64_t stop_ns = now_ns() + duration_ns;
        std::vector<epoll_event> events(512);
        while (now_ns() < stop_ns) {
            const int count = epoll_wait(ready, events.data(), static_cast<int>(events.size()), 10);
            for (int n = 0; n < count; ++n) {
                const int socket = events[static_cast<std::size_t>(n)].data.fd;
                // Only bytes count, so a message of which a part was sent needs no memory.
                for (int sends = 0; sends < kSendsAtOnce; ++sends) {
                    if (send(socket, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
                        break;
                    }
                }
            }
        }
    }
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: tcp-fanout SUBSCRIBERS MESSAGE_BYTES SECONDS SEND_BYTES\n");
        return 2;
    }
    const int subscribers = std::atoi(argv[1]);
    const std::size_t message_bytes = std::strtoul(argv[2], nullptr, 10);
    const double seconds = std::atof(argv[3]);
    const std::size_t messages = std::max<std::size_t>(std::strtoul(argv[4], nullptr, 10) / message_bytes, 1);
    raise_open_files();
    auto& shared = shared_memory<Shared>();
    const Listener listener;
    for (int i = 0; i < subscribers; ++i) {
        if (forked()) {
            close(listener.socket);
            _exit(receive(shared, connected_to(listener.address)));
        }
    }
    const Publisher publisher{.data = std::vector<char>(messages * message_bytes)};
    std::vector<int> sockets;
    for (int i = 0; i < subscribers; ++i) {
        sockets.push_back(accept(listener.socket, nullptr, nullptr));
        must(sockets.back() >= 0, "accept");
        publisher.add(sockets.back());
    }
    publisher.send_for(kWarmNs);
    shared.counts = true;
    publisher.send_for(static_cast<std::int64_t>(seconds * 1e9));
    shared.counts = false;
    for (const int each : sockets) {
        close(each);
    }
    while (wait(nullptr) > 0) {
    }
    std::printf("%.0f\n", static_cast<double>(shared.bytes) / static_cast<double>(message_bytes) / seconds);
    return 0;
}
