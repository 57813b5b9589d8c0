#include "common/channel.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <random>

#include "common/clock.h"
#include "common/protocol.h"

namespace hydra {
namespace {

constexpr int kMostMessageBytes = 2 * static_cast<int>(kMaxMessageBytes);
constexpr int kLingerMs = 1000;
constexpr std::int64_t kHelloEveryNs = 2 * kSecondNs;
constexpr std::size_t kLongestError = 1000;  // far below 4096 characters, whatever a character is

std::string random_name() {
    constexpr std::string_view digits = "0123456789abcdef";
    std::random_device random;
    std::string name;
    for (int i = 0; i < 16; ++i) {
        name += digits[random() % 16];
    }
    return name;
}

std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

}  // namespace

Channel::Channel(zmq::context_t& context, const Credentials& credentials, const Introduction& introduction)
    : Channel(context, introduction) {
    socket_.set(zmq::sockopt::curve_serverkey, credentials.server_public);
    socket_.set(zmq::sockopt::curve_publickey, credentials.client_public);
    socket_.set(zmq::sockopt::curve_secretkey, credentials.client_secret);
    connection_.emplace(context, socket_, credentials.endpoint);
    connect(credentials.endpoint);
}

Channel::Channel(zmq::context_t& context, const std::string& endpoint, const Introduction& introduction)
    : Channel(context, introduction) {
    connect(endpoint);
}

Channel::Channel(zmq::context_t& context, const Introduction& introduction)
    : socket_(context, zmq::socket_type::dealer),
      ids_(introduction.ids),
      hello_{.ids = introduction.ids,
             .role = introduction.role,
             .group = introduction.group,
             .incarnation = introduction.incarnation,
             .implementation = introduction.implementation,
             .versions = introduction.versions,
             .agent = variable("HYDRA_AGENT"),
             .host = host_name(),
             .boot_id = boot_id(),
             .time_namespace = time_namespace(),
             .network_namespace = network_namespace(),
             .pid = static_cast<std::uint32_t>(getpid())},
      heard_ns_(monotonic_ns()) {
    socket_.set(zmq::sockopt::routing_id, random_name());
    socket_.set(zmq::sockopt::maxmsgsize, std::int64_t{kMostMessageBytes});
    socket_.set(zmq::sockopt::linger, kLingerMs);
    socket_.set(zmq::sockopt::sndhwm, 0);  // see send
}

void Channel::connect(const std::string& endpoint) {
    socket_.connect(endpoint);
    fd_ = socket_.get(zmq::sockopt::fd);
}

std::int64_t Channel::introduce(std::int64_t now_ns) {
    if (now_ns >= hello_due_ns_) {
        hello_due_ns_ = now_ns + kHelloEveryNs;
        send(hello_);
    }
    return hello_due_ns_;
}

std::optional<FromController> Channel::receive() {
    while (stirred_) {
        zmq::message_t frame;
        if (!socket_.recv(frame, zmq::recv_flags::dontwait)) {
            stirred_ = false;
            last_.rebuild();
            break;
        }
        heard_ns_ = monotonic_ns();
        // One message is one frame: of more than one, nothing is believed.
        const bool whole = !frame.more();
        while (socket_.get(zmq::sockopt::rcvmore)) {
            zmq::message_t rest;
            static_cast<void>(socket_.recv(rest, zmq::recv_flags::dontwait));
        }
        if (!whole || frame == last_) {
            continue;
        }
        try {
            FromController message = decode(frame.to_string_view());
            const Ids named = ours(std::visit([](const auto& it) { return it.ids; }, message));
            if (named.empty()) {
                continue;
            }
            if (const auto* welcome = std::get_if<Welcome>(&message)) {
                hello_due_ns_ = kNeverNs;
                silence_ns_ = to_ns(welcome->silence_s);
            } else if (const auto* ping = std::get_if<Ping>(&message)) {
                if (ping->reply && !connection_) {
                    answer(*ping);
                }
            }
            last_.swap(frame);
            return message;
        } catch (const ProtocolError&) {
            continue;
        }
    }
    return std::nullopt;
}

// A send that waited for a controller which has vanished would never end. So the queue has no high-water mark
// (it grows until the silence has been too long), and what libzmq does not take, because it has given the
// connection up, is lost: then there is nothing but silence either.
void Channel::send(const FromClient& message) {
    send_frame(encode(message, ++seq_));
}

bool Channel::send_if_fits(const FromClient& message) {
    const std::string frame = encode(message, ++seq_);
    if (frame.size() > kMaxMessageBytes) {
        return false;
    }
    send_frame(frame);
    return true;
}

void Channel::send(const BatchHead& head, const std::string& payload) {
    send_frame(encode(head, ++seq_), zmq::send_flags::sndmore);
    send_frame(payload);
}

void Channel::send_frame(const std::string& frame, zmq::send_flags more) {
    stirred_ = true;
    static_cast<void>(socket_.send(zmq::buffer(frame), more | zmq::send_flags::dontwait));
}

void Channel::acknowledge(Ids ids, std::uint32_t epoch, const char* command, std::int64_t echo) {
    send(Ack{
        .ids = std::move(ids), .epoch = epoch, .command = command, .time_ns = monotonic_ns(), .echo = echo});
}

void Channel::answer(const Ping& ping) {
    acknowledge(ours(ping.ids), 0, "ping", ping.time_ns);
}

void Channel::complain(Ids ids, std::uint32_t epoch, const std::string& what, bool fatal) {
    send(Error{
        .ids = std::move(ids), .epoch = epoch, .message = what.substr(0, kLongestError), .fatal = fatal});
}

Ids Channel::ours(const Ids& named) const {
    if (named.empty()) {
        return ids_;
    }
    Ids sorted = named;
    std::ranges::sort(sorted);
    Ids both;
    std::ranges::set_intersection(ids_, sorted, std::back_inserter(both));
    return both;
}

std::int64_t Channel::silent_at_ns() const {
    return silence_ns_ == 0 ? kNeverNs : heard_ns_ + silence_ns_ + 1;
}

bool Channel::silent(std::int64_t now_ns) {
    if (now_ns < silent_at_ns()) {
        return false;
    }
    // A process that was kept from running has not been silent to: its pings may be waiting.
    stirred_ = (socket_.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
    return !stirred_;
}

}  // namespace hydra
