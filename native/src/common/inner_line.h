// The end of a process of clients of its connection to its relay: a plain stream. It costs a process no
// thread, no handshake and no detour, and there are thousands of them.
#pragma once

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
    // Waits where the relay has left some hundred messages unread. What was sent arrives, also where this
    // process ends before.
    void send(std::string_view frame, bool more = false) override;
    [[nodiscard]] int fd() const override { return fd_; }
    [[nodiscard]] bool readable() const override;

  private:
    int fd_;
    FrameReader arrived_;
};

}  // namespace hydra
