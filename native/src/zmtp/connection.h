// One subscriber's connection to one publisher: a plain socket that speaks ZMTP 3.0.
//
// One that is refused, or lost, is made anew after a while, as libzmq does. What is wrong for good is thrown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/batch.h"
#include "common/clock.h"
#include "common/waiter.h"
#include "zmtp/decoder.h"
#include "zmtp/destination.h"

namespace hydra {

class ZmtpConnection final : private ZmtpEvents {
  public:
    // The kernel's receive buffer in bytes; 0 leaves its size to the kernel.
    ZmtpConnection(Destination& to, int rcvbuf_bytes) : to_(to), rcvbuf_bytes_(rcvbuf_bytes) {}
    ~ZmtpConnection() { close(); }
    ZmtpConnection(const ZmtpConnection&) = delete;
    ZmtpConnection& operator=(const ZmtpConnection&) = delete;

    // Makes a socket, which dials when it is its turn. TransportError: there is none to be had.
    void open();

    // Closes it and forgets what has come; `open` makes another.
    void close();

    // Watched under this token from now on, whatever socket it has; null: no longer.
    void watch(Waiter* waiter, std::uint64_t token);

    // The other end has closed it, or it could not be reached: `read` goes on until it has seen that.
    void ended() { ended_ = true; }

    // Takes what there is, with one read of at most as much as the buffer holds, and the batch. Whether there
    // may be more. TransportError: what answers there is no publisher that can be talked to.
    bool read(Batch& batch, std::span<char> buffer);

    // When `tend` has something to do; kNeverNs: nothing.
    [[nodiscard]] std::int64_t due_ns() const { return due_ns_; }
    // Dials anew if it is time. TransportError: it cannot from here, such as for want of a port.
    void tend(std::int64_t now_ns);

    [[nodiscard]] const Destination& to() const { return to_; }

    // Connections that were lost after they had worked, and those among them for what came over them.
    [[nodiscard]] std::uint32_t lost() const { return lost_; }
    [[nodiscard]] std::uint32_t refused() const { return refused_; }
    void forget_losses() { lost_ = refused_ = 0; }

  private:
    friend Destination;
    enum class State : std::uint8_t { closed, waiting, dialling, open };

    void dial();
    void subscribe();
    void lose();
    void set_due(std::int64_t at_ns);
    void send(std::string_view bytes);
    void flush();
    void opened() override;
    void pinged(std::string_view context) override;

    Destination& to_;
    ZmtpDecoder decoder_;
    std::string unsent_;
    Waiter* waiter_ = nullptr;
    std::uint64_t token_ = 0;
    std::int64_t due_ns_ = kNeverNs;
    int fd_ = -1;
    int rcvbuf_bytes_;
    int failed_ = 0;  // what this host has refused to do (errno)
    std::uint32_t lost_ = 0;
    std::uint32_t refused_ = 0;
    State state_ = State::closed;
    bool ended_ = false;
    bool subscribed_ = false;
};

}  // namespace hydra
