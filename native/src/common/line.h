// One end of a control connection, as the channel uses it: frames in both directions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

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

    // Whether something waits to be received, seen or not.
    [[nodiscard]] virtual bool readable() const = 0;
};

}  // namespace hydra
