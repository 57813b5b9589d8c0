// One connection of libnats, which runs one thread that reads and one that writes.
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

    // Connects unless it is connected to these servers already; returns whether the connection is new.
    // TransportError: no server accepts the client. With `one_thread`, one thread of the process delivers the
    // messages of all its connections; otherwise each subscription has its own.
    bool open(const NatsStep& step, bool one_thread = false);
    void close();
    // Whether it is connected to the servers of a step in the way that the step names.
    [[nodiscard]] bool reaches(const NatsStep& step) const;

    [[nodiscard]] natsConnection* get() const { return connection_; }
    // False while the connection is lost; libnats reconnects by itself.
    [[nodiscard]] bool connected() const;
    // Waits until the server has answered everything that was written before. Returns whether it has.
    bool flush(std::int64_t timeout_ms) const;

    void begin_step();
    [[nodiscard]] NatsTrouble trouble() const;

  private:
    // Libnats' threads write here, until the connection's last callback releases it.
    struct Events {
        std::atomic<std::uint64_t> slow_consumers = 0;
        std::atomic<std::uint64_t> disconnects = 0;
    };
    using Shared = std::shared_ptr<Events>;

    natsConnection* connection_ = nullptr;
    NatsStep access_;  // of the step that it was opened for, servers, login and TLS
    Shared events_;
};

}  // namespace hydra
