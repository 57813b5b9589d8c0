// How much memory a publisher may use. Every queue has this limit: a high-water mark counts messages, and a
// few large ones fill a host.
#pragma once

#include <cstdint>
#include <string>

namespace hydra {

class MemoryLimit {
  public:
    // 0: no limit.
    explicit MemoryLimit(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

    // The reason why the process must stop queueing, or "".
    [[nodiscard]] std::string exceeded();

    // A step begins: memory of the last step does not count against its limit. Waits at most `limit_ns`
    // for a library that frees a full queue in a thread of its own.
    void begin_step(std::int64_t limit_ns);

  private:
    std::uint64_t limit_bytes_;
    bool gave_back_ = false;  // in this step
};

}  // namespace hydra
