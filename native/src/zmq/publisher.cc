#include "zmq/publisher.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/clock.h"
#include "common/environment.h"
#include "common/system_fields.h"
#include "zmq/settings.h"
#include "zmq/sockets.h"
#include "zmq/topic_prefix.h"

namespace hydra {
namespace {

constexpr int kBacklog = 4096;
// A fixed port stays in use until libzmq's own thread has closed the earlier socket.
constexpr std::int64_t kRebindWithinNs = 2 * kSecondNs;
constexpr std::int64_t kRebindEveryNs = 5 * kMillisecondNs;
// How long one send waits before the control channel is read again. On XPUB, POLLOUT is always true although
// a send may return EAGAIN, so there is nothing better to wait for.
constexpr int kSendTimeoutMs = 10;

std::string first_port() {
    const std::string ports = variable("HYDRA_PORTS");
    const std::string first = ports.substr(0, ports.find(','));
    return first.empty() ? "*" : first;
}

}  // namespace

ZmqPublisher::ZmqPublisher(zmq::context_t& context, const ZmqOptions& options)
    : context_(context), options_(options), host_(variable("HYDRA_DATA_HOST")), port_(first_port()) {
    if (host_.empty()) {
        host_ = "127.0.0.1";
    }
}

std::string ZmqPublisher::configure(const Configure& command) {
    const auto settings = read_system<ZmqSettings>(command.system);
    if (!socket_ || settings.sndhwm != sndhwm_ || settings.nodrop != nodrop_) {
        sndhwm_ = settings.sndhwm;
        nodrop_ = settings.nodrop;
        open();
    }
    prefix_bytes_ = topics_of(command) > 1 ? kTopicPrefixBytes : 0;
    signalled_ = signalled_topics(command);
    return endpoint_;
}

void ZmqPublisher::open() {
    try {
        // PUB never blocks; XPUB with NODROP waits for at most its timeout.
        open_data_socket(socket_, context_, nodrop_ ? zmq::socket_type::xpub : zmq::socket_type::pub,
                         options_);
        socket_.set(zmq::sockopt::backlog, kBacklog);
        socket_.set(zmq::sockopt::sndhwm, sndhwm_);
        if (nodrop_) {
            socket_.set(zmq::sockopt::xpub_nodrop, 1);
            socket_.set(zmq::sockopt::sndtimeo, kSendTimeoutMs);
        }
        if (options_.secure) {
            socket_.set(zmq::sockopt::curve_server, true);
            socket_.set(zmq::sockopt::curve_secretkey, read_data_keys(Role::publisher).server_secret);
        }
        bind();
        endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
    } catch (const zmq::error_t& e) {
        socket_.close();  // so that a repeated command tries again
        throw no_data_socket(e);
    } catch (const TransportError&) {
        socket_.close();
        throw;
    }
}

void ZmqPublisher::bind() {
    // Abstract: no file is left behind, and no folder has to be agreed on.
    const std::string where =
        options_.ipc ? "ipc://@hydra-" + std::to_string(getpid()) + "-" + std::to_string(monotonic_ns())
                     : "tcp://" + host_ + ":" + port_;
    const std::int64_t deadline = monotonic_ns() + kRebindWithinNs;
    while (true) {
        try {
            socket_.bind(where);
            return;
        } catch (const zmq::error_t& e) {
            if (e.num() != EADDRINUSE || monotonic_ns() > deadline) {
                throw TransportError("cannot bind " + where + ": " + e.what() +
                                     "; look at HYDRA_DATA_HOST and the ports");
            }
        }
        sleep_until_ns(monotonic_ns() + kRebindEveryNs);
    }
}

void ZmqPublisher::probe(const Header& header) {
    for (std::uint32_t topic = 0; topic < signalled_ && send_one(topic, header, {}, true); ++topic) {
    }
}

std::size_t ZmqPublisher::send(const Chunk& chunk) {
    const bool zeros = chunk.payload.zeros();
    PayloadBlock::Rooms rooms = chunk.rooms();
    std::size_t accepted = 0;
    while (accepted < chunk.count() && send_one(chunk.topic(accepted), chunk.header(accepted),
                                                rooms.next().subspan(kHeaderBytes), zeros)) {
        ++accepted;
    }
    return accepted;
}

// Written into the library's memory: a message of up to 33 bytes is stored in zmq_msg_t itself, without an
// allocation. False: the queue is full.
bool ZmqPublisher::send_one(std::uint32_t topic, const Header& header, std::span<const char> payload,
                            bool zeros) {
    zmq_msg_t message;
    if (zmq_msg_init_size(&message, prefix_bytes_ + kHeaderBytes + payload.size()) != 0) {
        throw zmq::error_t();
    }
    auto* bytes = static_cast<char*>(zmq_msg_data(&message));
    if (prefix_bytes_ > 0) {
        std::memcpy(bytes, topic_prefix(topic).data(), kTopicPrefixBytes);
        bytes += kTopicPrefixBytes;
    }
    write_header(bytes, header);
    if (zeros) {
        std::memset(bytes + kHeaderBytes, 0, payload.size());  // faster than copying zeros: it reads nothing
    } else {
        std::memcpy(bytes + kHeaderBytes, payload.data(), payload.size());
    }
    while (zmq_msg_send(&message, socket_.handle(), nodrop_ ? 0 : ZMQ_DONTWAIT) < 0) {
        if (zmq_errno() == EINTR) {
            continue;
        }
        const bool full = zmq_errno() == EAGAIN;
        zmq_msg_close(&message);
        if (!full) {
            throw zmq::error_t();
        }
        return false;
    }
    return true;
}

// A frame of ZMTP 3: a byte of flags, and the length in one byte, or in eight if it is above 255. CURVE adds
// its own box.
std::optional<std::uint64_t> ZmqPublisher::framed_bytes(std::uint64_t message_size) const {
    if (options_.secure) {
        return std::nullopt;
    }
    const std::uint64_t body = prefix_bytes_ + message_size;
    return body + (body <= 255 ? 2 : 9);
}

// Discards the subscription messages that XPUB collects.
void ZmqPublisher::poll() {
    char ignored[8];
    while (nodrop_ && socket_ && zmq_recv(socket_.handle(), ignored, sizeof ignored, ZMQ_DONTWAIT) >= 0) {
    }
}

}  // namespace hydra
