// The connection of a process of clients to its relay: a plain stream. There are thousands of them, so it
// needs no thread and no handshake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/frame_connection.h"
#include "common/frames.h"

namespace hydra {

class InnerConnection : public FrameConnection {
  public:
    // Connects to the relay's socket at this path. Throws std::system_error.
    explicit InnerConnection(const std::string& path);
    ~InnerConnection() override;
    InnerConnection(const InnerConnection&) = delete;
    InnerConnection& operator=(const InnerConnection&) = delete;

    std::optional<std::string> receive() override;
    // Never waits: a frame that the relay's socket does not accept is kept. It is sent when `receive` is
    // called after the waiter has reported space, or in the destructor, which waits.
    void send(std::string_view frame, bool more = false) override;
    [[nodiscard]] int fd() const override { return fd_; }
    void watch(Waiter* waiter, std::uint64_t token) override;
    [[nodiscard]] bool readable() const override;

  private:
    void flush();
    [[nodiscard]] bool waits() const { return sent_ < unsent_.size(); }

    int fd_;
    FrameReader arrived_;
    std::string unsent_;
    std::size_t sent_ = 0;  // of unsent_
    Waiter* waiter_ = nullptr;
    std::uint64_t token_ = 0;
};

}  // namespace hydra
