// How much memory a publisher with an unbounded queue may take, by HYDRA_MEMORY_LIMIT_BYTES (0 or unset: any
// amount).
#pragma once

#include <cstdint>
#include <string>

namespace hydra {

class MemoryLimit {
  public:
    // Throws EnvironmentError.
    MemoryLimit();

    // Why the process must stop queueing, or "".
    [[nodiscard]] std::string exceeded() const;

    // What the library has freed, the kernel gets back: otherwise the next step would begin at the limit.
    void give_back() const;

  private:
    std::uint64_t limit_bytes_;
};

}  // namespace hydra
