#include "common/memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace hydra {
namespace {

std::uint64_t resident_bytes() {
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::string MemoryLimit::exceeded() {
    if (limit_bytes_ == 0 || resident_bytes() <= limit_bytes_) {
        return "";
    }
    if (!gave_back_) {
        // Much of it may be what the library has freed, of an earlier step too: the kernel gets that back.
        // Once a step, because it takes its time.
        gave_back_ = true;
        malloc_trim(0);
        if (resident_bytes() <= limit_bytes_) {
            return "";
        }
    }
    return "the process passed its memory limit of " + std::to_string(limit_bytes_) +
           " bytes: too much waits in its queue";
}

void MemoryLimit::begin_step() {
    gave_back_ = false;
    if (limit_bytes_ != 0 && resident_bytes() > limit_bytes_ / 2) {
        malloc_trim(0);
    }
}

}  // namespace hydra
