#include "common/controller_liveness.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

namespace hydra {
namespace {

constexpr std::int64_t kKnockEveryNs = kSecondNs;
// A single refusal may be a short failure of the network.
constexpr int kRefusals = 3;
constexpr int kKnockMs = 500;
constexpr const char* kEvents = "inproc://connection";
constexpr std::string_view kScheme = "tcp://";

struct Closed {
    int fd;
    ~Closed() {
        if (fd >= 0) {
            close(fd);
        }
    }
};

// Whether the host of this endpoint refuses connections there. A network that does not answer proves nothing.
bool refuses(const std::string& endpoint) {
    const std::size_t colon = endpoint.rfind(':');
    const std::string host = endpoint.substr(kScheme.size(), colon - kScheme.size());
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), endpoint.c_str() + colon + 1, &hints, &found) != 0) {
        return false;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> address(found, freeaddrinfo);
    const Closed knock{socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (knock.fd < 0 || connect(knock.fd, address->ai_addr, address->ai_addrlen) == 0) {
        return false;
    }
    int error = errno;
    if (error == EINPROGRESS) {
        pollfd wait{knock.fd, POLLOUT, 0};
        socklen_t size = sizeof error;
        if (poll(&wait, 1, kKnockMs) != 1 || getsockopt(knock.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
            return false;
        }
    }
    return error == ECONNREFUSED;
}

}  // namespace

void LostConnection::lost(std::int64_t now_ns) {
    if (due_ns_ == kNeverNs) {
        due_ns_ = now_ns + kKnockEveryNs;
    }
}

void LostConnection::found() {
    due_ns_ = kNeverNs;
    in_a_row_ = 0;
}

void LostConnection::attempted(std::int64_t now_ns, bool refused) {
    due_ns_ = now_ns + kKnockEveryNs;
    in_a_row_ = refused ? in_a_row_ + 1 : 0;
}

bool LostConnection::controller_ended() const {
    return in_a_row_ >= kRefusals;
}

ControllerLiveness::ControllerLiveness(zmq::context_t& context, zmq::socket_t& socket, std::string endpoint)
    : watched_(socket.handle()), endpoint_(std::move(endpoint)), events_(context, zmq::socket_type::pair) {
    if (zmq_socket_monitor(watched_, kEvents, ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED) != 0) {
        throw zmq::error_t();
    }
    events_.set(zmq::sockopt::linger, 0);
    events_.connect(kEvents);
    fd_ = events_.get(zmq::sockopt::fd);
}

// Stops the monitor before events_ closes: libzmq waits for a monitor's reader.
ControllerLiveness::~ControllerLiveness() {
    zmq_socket_monitor(watched_, nullptr, 0);
}

bool ControllerLiveness::controller_ended() {
    take_events();
    if (monotonic_ns() >= due_ns()) {
        const bool refused = refuses(endpoint_);
        refusals_.attempted(monotonic_ns(), refused);
    }
    return refusals_.controller_ended();
}

// An event has two frames: its number and value, and an endpoint.
void ControllerLiveness::take_events() {
    zmq::message_t event;
    while (events_.recv(event, zmq::recv_flags::dontwait)) {
        std::uint16_t number = 0;
        std::memcpy(&number, event.data(), sizeof number);
        zmq::message_t endpoint;
        static_cast<void>(events_.recv(endpoint, zmq::recv_flags::dontwait));
        if (number == ZMQ_EVENT_DISCONNECTED) {
            refusals_.lost(monotonic_ns());
        } else {
            refusals_.found();
        }
    }
}

}  // namespace hydra
