// bare-zmq subscribers=N sockets=0|1 size=BYTES warm=S seconds=S rate=R hwm=H: an XPUB of libzmq and
// subscribers that only count. With sockets=0 each is a forked SUB of libzmq; with sockets=1 one process has
// a TCP socket for each, reads them with epoll, and computes the number of messages from that of the bytes.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <zmq.h>

#include <string>
#include <string_view>
#include <thread>

#include "window.h"

namespace {

using Port = Announcement<int>;

void set(void* socket, int option, int value) {
    must(zmq_setsockopt(socket, option, &value, sizeof value) == 0, "zmq_setsockopt");
}

void* context() {
    void* it = zmq_ctx_new();
    zmq_ctx_set(it, ZMQ_IO_THREADS, 1);
    zmq_ctx_set(it, ZMQ_MAX_SOCKETS, 8);
    return it;
}

// --- subscribers on libzmq -----------------------------------------------------------------------------

void receive(bare::Measurement& measurement, const bare::Arguments& arguments, int port) {
    void* socket = zmq_socket(context(), ZMQ_SUB);
    set(socket, ZMQ_RCVHWM, arguments.number("hwm"));
    must(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) == 0, "subscribe");
    must(zmq_connect(socket, ("tcp://127.0.0.1:" + std::to_string(port)).c_str()) == 0, "connect");
    bare::Tally tally(arguments.rate() > 0);
    std::thread([socket, &tally] {
        zmq_msg_t message;
        zmq_msg_init(&message);
        while (zmq_msg_recv(&message, socket, 0) >= 0) {
            tally.take(zmq_msg_data(&message));
        }
    }).detach();
    measurement.observe(tally);
    std::_Exit(0);  // while the other thread still receives
}

// --- subscribers on sockets ----------------------------------------------------------------------------

constexpr std::size_t kGreetingBytes = 64;
constexpr std::size_t kShortest = 2;  // the bytes before a message of at most 255 bytes
constexpr std::size_t kLongest = 9;   // … before a longer one
constexpr std::size_t kBufferBytes = 64 * 1024;
constexpr int kEvents = 512;

void read_exactly(int fd, char* bytes, std::size_t count) {
    must(recv(fd, bytes, count, MSG_WAITALL) == static_cast<ssize_t>(count), "handshake");
}

void write_all(int fd, std::string_view bytes) {
    must(write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "handshake");
}

// Connects, and subscribes to everything by ZMTP 3.0.
int subscribed_socket(int port, int number) {
    using std::string_view_literals::operator""sv;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(fd >= 0, "socket");
    // From several addresses, because one has too few free ports for one destination.
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(127U << 24 | 1U << 16 | static_cast<std::uint32_t>(1 + number / 4096));
    const int on = 1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    must(bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0, "bind");
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0, "connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::string greeting(kGreetingBytes, '\0');
    greeting[0] = '\xFF';
    greeting[9] = '\x7F';
    greeting[10] = 3;
    greeting.replace(12, 4, "NULL");
    write_all(fd, greeting);
    write_all(fd, "\x04\x19\x05READY\x0BSocket-Type\x00\x00\x00\x03SUB"sv);
    char bytes[kGreetingBytes + 256];
    read_exactly(fd, bytes, kGreetingBytes + 2);
    read_exactly(fd, bytes, static_cast<unsigned char>(bytes[kGreetingBytes + 1]));
    write_all(fd, "\x00\x01\x01"sv);
    must(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
    return fd;
}

void read_all(int poll, std::size_t frame_bytes, bare::Tally& tally) {
    static std::array<char, kBufferBytes> buffer;
    std::array<epoll_event, kEvents> events;
    std::size_t bytes = 0;
    while (true) {
        const int count = epoll_wait(poll, events.data(), kEvents, -1);
        for (int i = 0; i < count; ++i) {
            const ssize_t got =
                recv(events[static_cast<std::size_t>(i)].data.fd, buffer.data(), buffer.size(), 0);
            must(got > 0, "recv");
            bytes += static_cast<std::size_t>(got);
        }
        tally.add(bytes / frame_bytes);
        bytes %= frame_bytes;
    }
}

void receive_on_sockets(bare::Measurement& measurement, const bare::Arguments& arguments, int port) {
    const int poll = epoll_create1(EPOLL_CLOEXEC);
    must(poll >= 0, "epoll_create1");
    for (int number = 0; number < arguments.subscribers(); ++number) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = subscribed_socket(port, number);
        must(epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event) == 0, "epoll_ctl");
    }
    bare::Tally tally(false);
    const std::size_t size = arguments.size();
    const std::size_t frame_bytes = size + (size < 256 ? kShortest : kLongest);
    std::thread(read_all, poll, frame_bytes, std::ref(tally)).detach();
    measurement.observe(tally);
    std::_Exit(0);
}

// --- the publisher -------------------------------------------------------------------------------------

void publish(bare::Measurement& measurement, const bare::Arguments& arguments, const Port& port,
             int processes) {
    void* socket = zmq_socket(context(), ZMQ_XPUB);
    set(socket, ZMQ_SNDHWM, arguments.number("hwm"));
    set(socket, ZMQ_LINGER, 0);
    set(socket, ZMQ_BACKLOG, 4096);
    set(socket, ZMQ_XPUB_VERBOSE, 1);
    must(zmq_bind(socket, "tcp://127.0.0.1:*") == 0, "bind");
    char where[64] = {};
    std::size_t size = sizeof where;
    must(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, where, &size) == 0, "endpoint");
    const std::string endpoint = where;
    port.make(std::atoi(endpoint.substr(endpoint.rfind(':') + 1).c_str()), processes);
    for (int joined = 0; joined < arguments.subscribers();) {
        char subscription[8];
        joined += zmq_recv(socket, subscription, sizeof subscription, 0) > 0 ? 1 : 0;
    }
    const std::size_t bytes = arguments.size();
    measurement.publish(
        bytes, [&](const char* message) { return zmq_send(socket, message, bytes, ZMQ_DONTWAIT) >= 0; });
}

}  // namespace

int main(int argc, char** argv) {
    const bare::Arguments arguments(argc, argv);
    bare::Measurement measurement(arguments);
    const Port port;
    const bool sockets = arguments.number("sockets") != 0;
    const int processes = sockets ? 1 : arguments.subscribers();
    measurement.fork_each(processes, [&](int) {
        (sockets ? receive_on_sockets : receive)(measurement, arguments, port.await());
    });
    publish(measurement, arguments, port, processes);
    std::fflush(stdout);
    std::_Exit(0);  // the library's cleanup is not measured
}
