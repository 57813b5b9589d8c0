#include "zmq/memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "common/environment.h"

namespace hydra {
namespace {

std::uint64_t resident_bytes() {
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

MemoryLimit::MemoryLimit()
    : limit_bytes_(static_cast<std::uint64_t>(number_variable("HYDRA_MEMORY_LIMIT_BYTES").value_or(0))) {}

std::string MemoryLimit::exceeded() const {
    if (limit_bytes_ == 0) {
        return "";
    }
    const std::uint64_t resident = resident_bytes();
    if (resident <= limit_bytes_) {
        return "";
    }
    return "the process passed its memory limit of " + std::to_string(limit_bytes_) +
           " bytes: the queue is unbounded";
}

void MemoryLimit::give_back() const {
    if (limit_bytes_ != 0 && resident_bytes() > limit_bytes_ / 2) {
        malloc_trim(0);
    }
}

}  // namespace hydra
