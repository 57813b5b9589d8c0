#include "zmtp/system.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "common/whole_number.h"

namespace hydra {

void ZmtpSystem::add_options(CLI::App& app) {
    app.add_option("--zmtp-rcvbuf", rcvbuf_bytes_, "bytes of the kernel's receive buffer of each connection")
        ->check(whole_number(0, INT32_MAX));
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
