// CPU and memory of a process, from getrusage.
#pragma once

#include "common/messages/reports.h"

namespace hydra {

// CPU since the meter was made, and the process's peak memory.
class UsageMeter {
  public:
    UsageMeter();
    [[nodiscard]] Usage read() const;

  private:
    double user_s_ = 0;  // until it was made
    double system_s_ = 0;
};

}  // namespace hydra
