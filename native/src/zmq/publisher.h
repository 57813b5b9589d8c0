// A bound PUB socket that drops at its high-water mark, or an XPUB socket that waits (`nodrop`).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <zmq.hpp>

#include "common/transport.h"
#include "zmq/options.h"

namespace hydra {

class ZmqPublisher final : public PublisherTransport {
  public:
    ZmqPublisher(zmq::context_t& context, const ZmqOptions& options);

    std::string configure(const Configure& command) override;
    void probe(const Header& header) override;
    [[nodiscard]] bool marks_end() const override { return true; }
    std::size_t send(const Chunk& chunk) override;
    void poll() override;
    [[nodiscard]] std::optional<std::uint64_t> framed_bytes(std::uint64_t message_size) const override;
    void close() override { socket_.close(); }

  private:
    void open();
    void bind();
    bool send_one(std::uint32_t topic, const Header& header, std::span<const char> payload, bool zeros);

    zmq::context_t& context_;
    ZmqOptions options_;
    std::string host_;
    std::string port_;
    zmq::socket_t socket_;
    int sndhwm_ = 0;
    bool nodrop_ = false;
    std::size_t prefix_bytes_ = 0;  // of the topic in front of the header; 0: one topic
    std::uint32_t signalled_ = 1;   // topics with probes and end markers
    std::string endpoint_;
};

}  // namespace hydra
