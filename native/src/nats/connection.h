// One connection of libnats, which runs one thread that reads and one that writes.
#pragma once

#include <nats/nats.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/acceptance.h"
#include "common/subscriber_connection.h"
#include "nats/control_messages.h"
#include "nats/handles.h"

namespace hydra {

class NatsConnection {
  public:
    NatsConnection();
    ~NatsConnection();
    NatsConnection(const NatsConnection&) = delete;
    NatsConnection& operator=(const NatsConnection&) = delete;

    static constexpr std::int64_t kConnectWithinMs = 5'000;
    static constexpr std::int64_t kAnswerMs = 5'000;  // time limit for the server's answer to a request

    // Connects unless it is connected to these servers already; returns whether the connection is new.
    // TransportError: no server accepts the client, in this time. With `one_thread`, one thread of the
    // process delivers the messages of all its connections; otherwise each subscription has its own.
    bool open(const NatsStep& step, bool one_thread = false, std::int64_t within_ms = kConnectWithinMs);
    void close();
    // Whether it is connected to the servers of a step in the way that the step names.
    [[nodiscard]] bool reaches(const NatsStep& step) const;

    [[nodiscard]] natsConnection* get() const { return connection_; }
    // False while the connection is lost; libnats reconnects by itself.
    [[nodiscard]] bool connected() const;
    // Waits until the server has answered everything that was written before. Returns whether it has.
    bool flush(std::int64_t timeout_ms);
    // The same of the messages whose number is `written`, in several calls: a ping without an answer is that
    // of the next call, too. If each call sent another one, a server whose answer takes longer than a call
    // would never answer in time.
    bool flush(std::uint64_t written, std::int64_t timeout_ms);
    // Ends a subscription. In libnats before 3.6 the thread that reads may still be about to use it for a
    // message (issue 637 of nats.c), so it is freed later: after a flush, or when the connection is closed.
    void end(natsSubscription* subscription);

    void begin_step();
    [[nodiscard]] NatsTrouble trouble() const;
    // The losses since begin_step, with libnats' last error before the first.
    [[nodiscard]] ConnectionLosses losses() const;
    // The error of a message that the client may not publish since begin_step, or "".
    [[nodiscard]] std::string not_permitted() const;
    // When the servers had accepted the client (CLOCK_MONOTONIC).
    [[nodiscard]] std::int64_t connected_ns() const { return connected_ns_; }
    // The disconnections since begin_step, which libnats ends by itself.
    [[nodiscard]] std::vector<Disconnection> disconnections() const;

  private:
    // Libnats' threads write here, until the connection's last callback releases it.
    struct Events {
        std::atomic<std::uint64_t> slow_consumers = 0;
        std::atomic<std::uint64_t> disconnects = 0;
        bool has_tls = false;
        std::mutex mutex;
        std::vector<Disconnection> disconnections;
        std::string lost_why;
        std::string not_permitted;

        void lose(natsConnection* connection);
        void come_back();
        std::int64_t wait_ms(int attempts);
    };
    using Shared = std::shared_ptr<Events>;

    natsConnection* connection_ = nullptr;
    std::vector<NatsSubscriptionHandle> ended_;
    std::future<bool> asked_;           // whether the server answers the ping; invalid: none is on its way
    std::uint64_t written_before_ = 0;  // the messages before it
    NatsStep access_;                   // of the step that it was opened for, servers, login and TLS
    Shared events_;
    std::int64_t connected_ns_ = 0;
};

struct EndNatsSubscription {
    NatsConnection* connection;
    void operator()(natsSubscription* it) const { connection->end(it); }
};

// A subscription of a connection that exists longer.
using NatsSubscription = std::unique_ptr<natsSubscription, EndNatsSubscription>;

}  // namespace hydra
