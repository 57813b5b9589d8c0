#include "null/transports.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/clock.h"
#include "common/system_object.h"

namespace hydra {

std::string NullPublisher::configure(const Configure& command) {
    read_system<NullSettings>(command.system);
    return "null";
}

void NullPublisher::probe(const Header&) {}

std::size_t NullPublisher::send(const Chunk& chunk) {
    auto rooms = chunk.rooms();
    for (std::size_t i = 0; i < chunk.count(); ++i) {
        write_header(rooms.next().data(), chunk.header(i));
    }
    return chunk.count();
}

NullSubscriber::NullSubscriber() : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
    if (timer_ < 0) {
        throw TransportError(std::string("cannot make a timer: ") + std::strerror(errno));
    }
}

NullSubscriber::~NullSubscriber() {
    close(timer_);
}

void NullSubscriber::configure(const Configure& command) {
    settings_ = read_system<NullSettings>(command.system);
    size_ = static_cast<std::uint32_t>(command.settings.message_size);
    next_ = {.epoch = command.epoch, .publisher = 0, .sequence = 0, .time_ns = 0};
    if (!command.publishers.empty()) {
        next_.publisher = command.publishers.front().publisher;
    }
    itimerspec at{};
    at.it_value.tv_sec = settings_.from_ns / kSecondNs;
    at.it_value.tv_nsec = settings_.from_ns % kSecondNs;
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &at, nullptr);
}

bool NullSubscriber::receive(Batch& batch) {
    const std::int64_t now_ns = monotonic_ns();
    if (now_ns < settings_.from_ns || now_ns >= settings_.until_ns) {
        return false;
    }
    next_.time_ns = static_cast<std::uint64_t>(now_ns + settings_.ahead_ns);
    while (!batch.full()) {
        batch.add(&next_, size_);
        ++next_.sequence;
    }
    return true;
}

}  // namespace hydra
