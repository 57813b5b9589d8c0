// One end of a control connection, as the channel uses it: frames in both directions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/waiter.h"

namespace hydra {

class Line {
  public:
    virtual ~Line() = default;

    // A message of one frame that has arrived; never waits. None: nothing is left, and fd() becomes readable
    // anew when there is.
    virtual std::optional<std::string> receive() = 0;

    // What cannot be sent, because the other end is gone, is lost.
    virtual void send(std::string_view frame, bool more = false) = 0;

    // To be watched edge-triggered.
    [[nodiscard]] virtual int fd() const = 0;

    // Watched by this waiter under this token, until it is told another one; null: by none.
    virtual void watch(Waiter* waiter, std::uint64_t token) {
        if (waiter != nullptr) {
            waiter->add(fd(), token);
        }
    }

    // Whether something waits to be received, seen or not.
    [[nodiscard]] virtual bool readable() const = 0;
};

}  // namespace hydra
