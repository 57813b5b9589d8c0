// One end of a control connection, which sends and receives frames for the control client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/waiter.h"

namespace hydra {

class FrameConnection {
  public:
    virtual ~FrameConnection() = default;

    // A message of one frame that has arrived; never waits. None: nothing is left, and fd() becomes readable
    // when a message arrives.
    virtual std::optional<std::string> receive() = 0;

    // A frame is lost if the other end has ended.
    virtual void send(std::string_view frame, bool more = false) = 0;

    // Must be watched edge-triggered.
    [[nodiscard]] virtual int fd() const = 0;

    // Has this waiter watch the connection under this token, instead of an earlier one; null: none.
    virtual void watch(Waiter* waiter, std::uint64_t token) {
        if (waiter != nullptr) {
            waiter->add(fd(), token);
        }
    }

    // Whether a message waits to be received, even if the waiter has reported it.
    [[nodiscard]] virtual bool readable() const = 0;
};

}  // namespace hydra
