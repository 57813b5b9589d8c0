#include "common/control_client.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "common/clock.h"
#include "common/protocol.h"

namespace hydra {
namespace {

constexpr std::int64_t kHelloEveryNs = 2 * kSecondNs;
constexpr std::size_t kLongestError = 1000;  // far below 4096 characters in any encoding

std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

}  // namespace

ControlClient::ControlClient(OuterConnection& connection, const Introduction& introduction)
    : ControlClient(static_cast<FrameConnection&>(connection), introduction) {
    liveness_ = &connection.liveness();
    hello_.versions = introduction.versions;
    hello_.agent = variable("HYDRA_AGENT");
    hello_.host = host_name();
    hello_.boot_id = boot_id();
    hello_.time_namespace = time_namespace();
    hello_.network_namespace = network_namespace();
}

ControlClient::ControlClient(FrameConnection& connection, const Introduction& introduction)
    : connection_(connection),
      ids_(introduction.ids),
      hello_{.ids = introduction.ids,
             .role = introduction.role,
             .group = introduction.group,
             .incarnation = introduction.incarnation,
             .implementation = introduction.implementation,
             .pid = static_cast<std::uint32_t>(getpid())},
      received_ns_(monotonic_ns()) {}

std::int64_t ControlClient::introduce(std::int64_t now_ns) {
    if (now_ns >= hello_due_ns_) {
        hello_due_ns_ = now_ns + kHelloEveryNs;
        send(hello_);
    }
    return hello_due_ns_;
}

std::optional<FromController> ControlClient::receive() {
    while (stirred_) {
        std::optional<std::string> frame = connection_.receive();
        if (!frame) {
            stirred_ = false;
            last_.clear();
            break;
        }
        received_ns_ = monotonic_ns();
        if (*frame == last_) {
            continue;
        }
        try {
            FromController message = decode(*frame);
            const Ids named = own_ids(std::visit([](const auto& it) { return it.ids; }, message));
            if (named.empty()) {
                continue;
            }
            if (const auto* welcome = std::get_if<Welcome>(&message)) {
                hello_due_ns_ = kNeverNs;
                silence_ns_ = to_ns(welcome->silence_s);
            }
            last_ = std::move(*frame);
            return message;
        } catch (const ProtocolError&) {
            continue;
        }
    }
    return std::nullopt;
}

void ControlClient::send(const FromClient& message) {
    send_frame(encode(message, ++seq_));
}

bool ControlClient::send_if_fits(const FromClient& message) {
    const std::string frame = encode(message, ++seq_);
    if (frame.size() > kMaxMessageBytes) {
        return false;
    }
    send_frame(frame);
    return true;
}

void ControlClient::send(const BatchHead& head, const std::string& payload) {
    send_frame(encode(head, ++seq_), true);
    send_frame(payload);
}

void ControlClient::send_frame(const std::string& frame, bool more) {
    stirred_ = true;
    connection_.send(frame, more);
}

void ControlClient::send_ack(Ack ack) {
    ack.time_ns = monotonic_ns();
    send(ack);
}

void ControlClient::answer(const Ping& ping) {
    send_ack({.ids = own_ids(ping.ids), .command = Ping::kType, .echo = ping.time_ns});
}

void ControlClient::complain(Error error) {
    error.message.resize(std::min(error.message.size(), kLongestError));
    send(error);
}

Ids ControlClient::own_ids(const Ids& named) const {
    if (named.empty()) {
        return ids_;
    }
    Ids sorted = named;
    std::ranges::sort(sorted);
    Ids both;
    std::ranges::set_intersection(ids_, sorted, std::back_inserter(both));
    return both;
}

std::int64_t ControlClient::silent_at_ns() const {
    return silence_ns_ == 0 ? kNeverNs : received_ns_ + silence_ns_ + 1;
}

bool ControlClient::silent(std::int64_t now_ns) {
    if (now_ns < silent_at_ns()) {
        return false;
    }
    // If this process could not run for a while, pings of that time may wait in the socket: that is no
    // silence.
    stirred_ = connection_.readable();
    return !stirred_;
}

}  // namespace hydra
