#include "common/waiter.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "common/clock.h"

namespace hydra {
namespace {

// A wait spins for at most one part in this many of its time, so spinning takes at most a tenth of a
// core.
constexpr std::int64_t kSpunPart = 10;
constexpr std::uint32_t kArrivals = EPOLLIN | EPOLLRDHUP | EPOLLET;

bool readable_within(int fd, std::int64_t ns) {
    const timespec left{ns / kSecondNs, ns % kSecondNs};
    pollfd wait{fd, POLLIN, 0};
    return ppoll(&wait, 1, &left, nullptr) > 0;
}

}  // namespace

Waiter::Waiter(std::int64_t spin_ns) : epoll_(epoll_create1(EPOLL_CLOEXEC)), spin_ns_(spin_ns) {
    if (epoll_ < 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_create1");
    }
}

Waiter::~Waiter() {
    close(epoll_);
}

void Waiter::add(int fd, std::uint64_t token) {
    add(fd, token, kArrivals);
}

void Waiter::add_connecting(int fd, std::uint64_t token) {
    add(fd, token, kArrivals | EPOLLOUT);
}

void Waiter::await_room(int fd, std::uint64_t token, bool awaited) {
    control(EPOLL_CTL_MOD, fd, token, awaited ? kArrivals | EPOLLOUT : kArrivals);
}

void Waiter::add(int fd, std::uint64_t token, std::uint32_t events) {
    control(EPOLL_CTL_ADD, fd, token, events);
    if (events_.size() < kMostWakes) {
        events_.resize(events_.size() + 1);
    }
}

void Waiter::control(int operation, int fd, std::uint64_t token, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = token;
    if (epoll_ctl(epoll_, operation, fd, &event) != 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
}

void Waiter::remove(int fd) {
    if (fd >= 0) {
        epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
    }
}

std::span<const Waiter::Wake> Waiter::wait(std::int64_t until_ns) {
    int timeout_ms = 0;
    if (until_ns > 0) {
        const std::int64_t left_ns = until_ns - monotonic_ns();
        // The sleep keeps enough time for the longest spin that is allowed.
        const std::int64_t polled_ns = left_ns - kSpunPart * spin_ns_;
        timeout_ms = static_cast<int>(std::clamp<std::int64_t>(polled_ns / kMillisecondNs, 0, 3'600'000));
        bool spin = spin_ns_ > 0;
        if (left_ns > 0 && timeout_ms == 0) {
            const std::int64_t spun_ns = std::min(spin_ns_, left_ns / kSpunPart);
            // Arrivals more than a millisecond before the end must be noticed at once.
            if (left_ns < kMillisecondNs) {
                sleep_until_ns(until_ns - spun_ns);
            } else if (readable_within(epoll_, left_ns - spun_ns)) {
                spin = false;
            }
            while (spin && monotonic_ns() < until_ns) {
            }
        }
    }
    const int count = epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), timeout_ms);
    if (count < 0 && errno != EINTR) {
        throw std::system_error(errno, std::generic_category(), "epoll_wait");
    }
    constexpr std::uint32_t ended = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
    wakes_.clear();
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events_[static_cast<std::size_t>(i)];
        wakes_.push_back({event.data.u64, (event.events & ended) != 0});
    }
    return wakes_;
}

}  // namespace hydra
