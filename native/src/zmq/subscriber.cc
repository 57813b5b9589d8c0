#include "zmq/subscriber.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/local_limits.h"
#include "common/system_fields.h"
#include "zmq/settings.h"
#include "zmq/sockets.h"
#include "zmq/topic_prefix.h"

namespace hydra {
namespace {

constexpr std::size_t kKeyBytes = 41;

// A subscriber's own key pair proves nothing: a new one is made for every connection.
void secure(zmq::socket_t& socket) {
    std::array<char, kKeyBytes> own_public{};
    std::array<char, kKeyBytes> own_secret{};
    if (zmq_curve_keypair(own_public.data(), own_secret.data()) != 0) {
        throw zmq::error_t();
    }
    socket.set(zmq::sockopt::curve_serverkey, read_data_keys(Role::subscriber).server_public);
    socket.set(zmq::sockopt::curve_publickey, std::string(own_public.data()));
    socket.set(zmq::sockopt::curve_secretkey, std::string(own_secret.data()));
}

}  // namespace

void ZmqSubscriber::configure(const Configure& command) {
    const int rcvhwm = read_system<ZmqSettings>(command.system).rcvhwm;
    if (socket_ && rcvhwm == rcvhwm_ && command.publishers == publishers_ && chosen_ == topics_) {
        return;
    }
    topics_ = chosen_;
    prefix_bytes_ = topics_.numbered() ? kTopicPrefixBytes : 0;
    rcvhwm_ = rcvhwm;
    publishers_ = command.publishers;
    connect();
}

void ZmqSubscriber::connect() {
    fd_ = -1;
    try {
        open_data_socket(socket_, context_, zmq::socket_type::sub, options_);
        socket_.set(zmq::sockopt::rcvhwm, rcvhwm_);
        for (const std::uint32_t topic : topics_.topics) {
            socket_.set(zmq::sockopt::subscribe, topic_prefix(topic));
        }
        if (topics_.topics.empty()) {
            socket_.set(zmq::sockopt::subscribe, "");
        }
        if (options_.secure) {
            secure(socket_);
        }
        for (const PublisherEndpoint& publisher : publishers_) {
            try {
                socket_.connect(publisher.endpoint);
            } catch (const zmq::error_t& e) {
                throw TransportError("cannot connect to '" + publisher.endpoint +
                                     "': " + kernel_words(e.num()));
            }
        }
        fd_ = socket_.get(zmq::sockopt::fd);
    } catch (const zmq::error_t& e) {
        socket_.close();  // so that a repeated command tries again
        throw no_data_socket(e);
    } catch (const TransportError&) {
        socket_.close();
        throw;
    }
}

bool ZmqSubscriber::receive(Batch& batch) {
    zmq::message_t message;  // one object for all messages: the library empties it
    while (!batch.full()) {
        const int size = zmq_msg_recv(message.handle(), socket_.handle(), ZMQ_DONTWAIT);
        if (size < 0) {
            if (zmq_errno() == EINTR) {
                continue;
            }
            if (zmq_errno() != EAGAIN) {
                throw TransportError(std::string("cannot read the data socket: ") +
                                     zmq_strerror(zmq_errno()));
            }
            return false;
        }
        const auto whole = static_cast<std::size_t>(size);
        batch.add(static_cast<const char*>(message.data()) + prefix_bytes_,
                  whole - std::min(prefix_bytes_, whole));
    }
    return true;
}

void ZmqSubscriber::reconnect() {
    connect();
}

void ZmqSubscriber::leave() {
    fd_ = -1;
    socket_.close();
}

}  // namespace hydra
