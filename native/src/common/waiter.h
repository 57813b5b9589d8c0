// Waits for descriptors, edge-triggered: a descriptor is reported once when data arrives, and not again for
// data that was left unread. A client that may not read yet therefore needs no busy loop, and the cost is the
// same for one client as for thousands.
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hydra {

class Waiter {
  public:
    // Most descriptors in one result.
    static constexpr std::size_t kMostWakes = 256;

    // A descriptor with an arrival. `ended`: the other end has closed it, and nothing more will arrive.
    struct Wake {
        std::uint64_t token;
        bool ended;
    };

    // Waits end with a spin of at most `spin_ns`, and of at most a tenth of the time that is left when the
    // last sleep begins: for clients for which the kernel wakes up threads too late.
    explicit Waiter(std::int64_t spin_ns = 0);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    // A descriptor that is readable already is reported at once.
    void add(int fd, std::uint64_t token);
    // For a socket that is still connecting: also reported when it has connected, or cannot connect.
    void add_connecting(int fd, std::uint64_t token);
    // Whether this descriptor, which was added, is also reported when it can be written to.
    void await_room(int fd, std::uint64_t token, bool awaited);
    // A descriptor that is closed already is no error; nor is -1.
    void remove(int fd);

    // The arrivals, after waiting for at most `until_ns` (CLOCK_MONOTONIC), rounded down to milliseconds. The
    // rest of a millisecond (with a spin, up to ten times its length more) is slept, so the wait is
    // never late by more than the kernel's delay.
    std::span<const Wake> wait(std::int64_t until_ns);

  private:
    void add(int fd, std::uint64_t token, std::uint32_t events);
    void control(int operation, int fd, std::uint64_t token, std::uint32_t events);

    int epoll_;
    std::int64_t spin_ns_;
    std::vector<epoll_event> events_;
    std::vector<Wake> wakes_;
};

}  // namespace hydra
