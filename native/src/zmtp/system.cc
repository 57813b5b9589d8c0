#include "zmtp/system.h"

#include <stdexcept>

#include "common/clock.h"
#include "common/system_options.h"

namespace hydra {

void ZmtpSystem::add_options(CLI::App& app) {
    add_whole_number(app, "--zmtp-rcvbuf", rcvbuf_bytes_,
                     "bytes of the kernel's receive buffer of each connection", 0, INT32_MAX);
}

// Thousands of subscribers get a message each, one after the other. A wake-up for each costs the sender and
// the process several times as much as the message, and could alone fill a host that carries the load
// otherwise.
std::int64_t ZmtpSystem::gather_ns(std::size_t subscribers) const {
    constexpr std::size_t many = 1000;
    return subscribers < many ? 0 : kMillisecondNs;
}

std::unique_ptr<PublisherTransport> ZmtpSystem::open_publisher(zmq::context_t&) const {
    throw std::logic_error("zmtp has subscribers only");
}

std::unique_ptr<SubscriberTransport> ZmtpSystem::open_subscriber(zmq::context_t&) const {
    if (process_ == nullptr) {
        process_ = std::make_unique<ZmtpProcess>(rcvbuf_bytes_);
    }
    return std::make_unique<ZmtpSubscriber>(*process_);
}

}  // namespace hydra
