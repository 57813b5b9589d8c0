// How much memory a publisher may take. Every queue is held to it: a high-water mark counts messages, and a
// few large ones fill a host.
#pragma once

#include <cstdint>
#include <string>

namespace hydra {

class MemoryLimit {
  public:
    // 0: any amount.
    explicit MemoryLimit(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

    // Why the process must stop queueing, or "".
    [[nodiscard]] std::string exceeded();

    // A step begins: what the last one left behind does not count against it. A library that frees a full
    // queue in a thread of its own is waited for, at most so long.
    void begin_step(std::int64_t patience_ns);

  private:
    std::uint64_t limit_bytes_;
    bool gave_back_ = false;  // in this step
};

}  // namespace hydra
