#include "common/outer_connection.h"

#include <random>

#include "common/protocol.h"

namespace hydra {
namespace {

constexpr int kMostMessageBytes = 2 * static_cast<int>(kMaxMessageBytes);
constexpr int kLingerMs = 1000;

std::string random_name() {
    constexpr std::string_view digits = "0123456789abcdef";
    std::random_device random;
    std::string name;
    for (int i = 0; i < 16; ++i) {
        name += digits[random() % 16];
    }
    return name;
}

zmq::socket_t make_socket(zmq::context_t& context, const Credentials& credentials) {
    zmq::socket_t socket(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::routing_id, random_name());
    socket.set(zmq::sockopt::maxmsgsize, std::int64_t{kMostMessageBytes});
    socket.set(zmq::sockopt::linger, kLingerMs);
    socket.set(zmq::sockopt::sndhwm, 0);  // see send
    socket.set(zmq::sockopt::curve_serverkey, credentials.server_public);
    socket.set(zmq::sockopt::curve_publickey, credentials.client_public);
    socket.set(zmq::sockopt::curve_secretkey, credentials.client_secret);
    return socket;
}

}  // namespace

OuterConnection::OuterConnection(zmq::context_t& context, const Credentials& credentials)
    : socket_(make_socket(context, credentials)), liveness_(context, socket_, credentials.endpoint) {
    socket_.connect(credentials.endpoint);
    fd_ = socket_.get(zmq::sockopt::fd);
}

std::optional<std::string> OuterConnection::receive() {
    zmq::message_t frame;
    while (socket_.recv(frame, zmq::recv_flags::dontwait)) {
        // A message is one frame: a message of several frames is ignored.
        const bool whole = !frame.more();
        while (socket_.get(zmq::sockopt::rcvmore)) {
            zmq::message_t rest;
            static_cast<void>(socket_.recv(rest, zmq::recv_flags::dontwait));
        }
        if (whole) {
            return frame.to_string();
        }
    }
    return std::nullopt;
}

// Sending must not wait: if the controller has vanished, the wait would never end. So the queue has no
// high-water mark (it grows until the silence is too long). A frame that libzmq does not accept, because it
// has closed the connection, is lost: then only silence follows.
void OuterConnection::send(std::string_view frame, bool more) {
    const auto flags = more ? zmq::send_flags::sndmore : zmq::send_flags::none;
    static_cast<void>(socket_.send(zmq::buffer(frame), flags | zmq::send_flags::dontwait));
}

bool OuterConnection::readable() const {
    return (socket_.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
}

}  // namespace hydra
