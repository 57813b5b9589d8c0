// How many messages a slow reader may read: a limit that holds in every second, whatever pauses came before
// (docs/control-protocol.md, section 7). Pure. (Python: hydra/client/read_limit.py.)
#pragma once

#include <cstdint>

namespace hydra {

class ReadLimit {
  public:
    // `rate`: messages per second; 0: none after the first. All times are on one clock.
    ReadLimit(double rate, std::int64_t begin_ns);

    // The number of messages that may be read now.
    [[nodiscard]] std::uint64_t allowance(std::int64_t now_ns) const;

    // When a message may be read, after now if none may be read now; kNeverNs: never.
    [[nodiscard]] std::int64_t next_ns(std::int64_t now_ns) const;

    // Messages were read at this time.
    void read(std::int64_t now_ns, std::uint64_t messages);

  private:
    [[nodiscard]] double credit(std::int64_t now_ns) const;

    double rate_;
    double depth_;
    double credit_ = 1;
    std::int64_t at_ns_;
};

}  // namespace hydra
