// One connection of libnats, which runs a thread that reads and one that writes.
#pragma once

#include <nats/nats.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "nats/control_messages.h"
#include "nats/handles.h"

namespace hydra {

class NatsConnection {
  public:
    NatsConnection();
    ~NatsConnection();
    NatsConnection(const NatsConnection&) = delete;
    NatsConnection& operator=(const NatsConnection&) = delete;

    // Connects unless it is connected to these servers already; whether it is a new connection.
    // TransportError: no server lets us in.
    bool open(const std::vector<std::string>& servers);
    void close();

    [[nodiscard]] natsConnection* get() const { return connection_; }
    // Not while it is lost; libnats tries again by itself.
    [[nodiscard]] bool connected() const;
    // Waits until the server has answered to everything that was written before. Whether it has.
    bool flush(std::int64_t timeout_ms) const;

    void begin_step();
    [[nodiscard]] NatsTrouble trouble() const;

  private:
    // Written by libnats' threads, until the connection's last callback lets go of it.
    struct Events {
        std::atomic<std::uint64_t> slow_consumers = 0;
        std::atomic<std::uint64_t> disconnects = 0;
    };
    using Shared = std::shared_ptr<Events>;

    natsConnection* connection_ = nullptr;
    std::vector<std::string> servers_;
    Shared events_;
};

}  // namespace hydra
