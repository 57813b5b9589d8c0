// The end of a process of clients of its connection to its relay: a plain stream. It costs a process no
// thread, no handshake and no detour, and there are thousands of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/frames.h"
#include "common/line.h"

namespace hydra {

class InnerLine : public Line {
  public:
    // Dials the relay's socket by a path. Throws std::system_error.
    explicit InnerLine(const std::string& path);
    ~InnerLine() override;
    InnerLine(const InnerLine&) = delete;
    InnerLine& operator=(const InnerLine&) = delete;

    std::optional<std::string> receive() override;
    // Never waits: what the relay has no room for is kept, and leaves when `receive` is called after the
    // waiter has told of room, or at the end, which waits for it.
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
