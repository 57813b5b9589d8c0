// One subscriber's connection to one publisher: a plain socket that speaks ZMTP 3.0.
//
// If the connection is refused or lost, a new one is made after a while, as in libzmq. Permanent errors are
// thrown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/batch.h"
#include "common/clock.h"
#include "common/waiter.h"
#include "zmtp/connect_queue.h"
#include "zmtp/decoder.h"
#include "zmtp/topics.h"

namespace hydra {

class ZmtpConnection final : private ZmtpEvents {
  public:
    // The topics must exist as long as the connection. The kernel's receive buffer in bytes; 0 leaves its
    // size to the kernel.
    ZmtpConnection(ConnectQueue& to, const ZmtpTopics& topics, int rcvbuf_bytes)
        : to_(to), topics_(topics), decoder_(topics.prefix_bytes), rcvbuf_bytes_(rcvbuf_bytes) {}
    ~ZmtpConnection() { close(); }
    ZmtpConnection(const ZmtpConnection&) = delete;
    ZmtpConnection& operator=(const ZmtpConnection&) = delete;

    // Makes a socket, which connects when its turn comes. TransportError: no socket can be made.
    void open();

    // Closes the connection and discards received data; `open` makes another.
    void close();

    // Its sockets are watched under this token from now on; null: no longer.
    void watch(Waiter* waiter, std::uint64_t token);

    // The other end has closed the connection, or it could not be reached: `read` continues until it has
    // noticed.
    void ended() { ended_ = true; }

    // Reads once, at most what the buffer and the batch can hold. Returns whether there may be more.
    // TransportError: the other end is not a publisher that this client can use.
    bool read(Batch& batch, std::span<char> buffer);

    // When `tend` has to be called; kNeverNs: not.
    [[nodiscard]] std::int64_t due_ns() const { return due_ns_; }
    // Connects again if it is time. TransportError: this host cannot connect, for example because it has no
    // free port.
    void tend(std::int64_t now_ns);

    [[nodiscard]] const ConnectQueue& to() const { return to_; }

    // Connections that were lost after they had worked, and those among them that were closed because of
    // invalid data.
    [[nodiscard]] std::uint32_t lost() const { return lost_; }
    [[nodiscard]] std::uint32_t refused() const { return refused_; }
    void forget_losses() { lost_ = refused_ = 0; }

  private:
    friend ConnectQueue;
    enum class State : std::uint8_t { closed, waiting, dialling, open };

    void dial();
    void subscribe();
    void lose();
    void set_due(std::int64_t at_ns);
    void send(std::string_view bytes);
    void flush();
    void opened() override;
    void pinged(std::string_view context) override;

    ConnectQueue& to_;
    const ZmtpTopics& topics_;
    ZmtpDecoder decoder_;
    std::string unsent_;
    Waiter* waiter_ = nullptr;
    std::uint64_t token_ = 0;
    std::int64_t due_ns_ = kNeverNs;
    int fd_ = -1;
    int rcvbuf_bytes_;
    int failed_ = 0;  // errno of this host's last failure
    std::uint32_t lost_ = 0;
    std::uint32_t refused_ = 0;
    State state_ = State::closed;
    bool ended_ = false;
    bool subscribed_ = false;
};

}  // namespace hydra
