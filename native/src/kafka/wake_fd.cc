#include "kafka/wake_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace hydra {
namespace {

constexpr std::uint64_t kOne = 1;

}  // namespace

WakeFd::WakeFd() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) {
        throw std::system_error(errno, std::generic_category(), "eventfd");
    }
}

WakeFd::~WakeFd() {
    close(fd_);
}

void WakeFd::wake() const {
    static_cast<void>(eventfd_write(fd_, kOne));
}

void WakeFd::wake_with(rd_kafka_queue_t* queue) const {
    rd_kafka_queue_io_event_enable(queue, fd_, &kOne, sizeof kOne);
}

void WakeFd::let_go(rd_kafka_queue_t* queue) {
    rd_kafka_queue_io_event_enable(queue, -1, nullptr, 0);
}

}  // namespace hydra
