// What a process used of its host, by getrusage.
#pragma once

#include <sys/resource.h>

#include "common/messages/reports.h"

namespace hydra {

// CPU since it was made; memory is the process's peak.
class UsageMeter {
  public:
    UsageMeter();
    [[nodiscard]] Usage read() const;

  private:
    rusage begin_{};
};

}  // namespace hydra
