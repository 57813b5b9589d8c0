// CPU and memory of a process, from getrusage.
#pragma once

#include <sys/resource.h>

#include "common/messages/reports.h"

namespace hydra {

// CPU since the meter was made, and the process's peak memory.
class UsageMeter {
  public:
    UsageMeter();
    [[nodiscard]] Usage read() const;

  private:
    rusage begin_{};
};

}  // namespace hydra
