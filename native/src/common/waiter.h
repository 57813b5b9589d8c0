// Waits for descriptors, edge-triggered: a descriptor is reported once when something arrives there, and not
// again for what was left unread. That lets a client that may not read yet be left alone without a busy loop,
// and costs the same for one client as for thousands.
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hydra {

class Waiter {
  public:
    // Told at a time at most.
    static constexpr std::size_t kMostWakes = 256;

    // A descriptor at which something has arrived. `ended`: nothing more will, the other end has closed it.
    struct Wake {
        std::uint64_t token;
        bool ended;
    };

    // Waits end with a spin of at most `spin_ns`, and of at most a tenth of what is left when the last sleep
    // begins: for those to whom the time that the kernel takes to wake a thread is too late.
    explicit Waiter(std::int64_t spin_ns = 0);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    // What is readable already is told at once.
    void add(int fd, std::uint64_t token);
    // The same of a socket that is still connecting: told as well when it has connected, or cannot.
    void add_connecting(int fd, std::uint64_t token);
    // Whether this one, which was added, is also told of when it can be written to.
    void await_room(int fd, std::uint64_t token, bool awaited);
    // A descriptor that is gone already is no error; -1 neither.
    void remove(int fd);

    // What has arrived, waiting for at most `until_ns` (CLOCK_MONOTONIC), rounded down to milliseconds; the
    // rest of a millisecond (with a spin, up to ten times its length more) is slept, so that it never returns
    // late by more than the kernel does.
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
