#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "common/clock.h"
#include "common/linux_process.h"
#include "common/waiter.h"

using namespace hydra;

TEST_CASE("a readable descriptor is reported once for every arrival") {
    Waiter waiter;
    Pipe pipe;
    waiter.add(pipe.read_end(), 7);
    CHECK(waiter.wait(0).empty());
    REQUIRE(write(pipe.write_end(), "x", 1) == 1);
    const auto events = waiter.wait(monotonic_ns() + kSecondNs);
    REQUIRE(events.size() == 1);
    CHECK(events[0].token == 7);
    CHECK_FALSE(events[0].ended);
    CHECK(waiter.wait(0).empty());  // unread, but not reported again
    REQUIRE(write(pipe.write_end(), "x", 1) == 1);
    CHECK(waiter.wait(monotonic_ns() + kSecondNs).size() == 1);
}

TEST_CASE("the end of the data is reported with it, and that a socket can be written to") {
    Waiter waiter;
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    waiter.add_connecting(ends[0], 3);
    auto events = waiter.wait(0);
    REQUIRE(events.size() == 1);  // connected
    CHECK_FALSE(events[0].ended);
    REQUIRE(write(ends[1], "x", 1) == 1);
    close(ends[1]);
    events = waiter.wait(monotonic_ns() + kSecondNs);
    REQUIRE(events.size() == 1);
    CHECK(events[0].token == 3);
    CHECK(events[0].ended);
    close(ends[0]);
}

TEST_CASE("it waits until the given time, below a millisecond too") {
    Waiter waiter;
    Pipe pipe;
    waiter.add(pipe.read_end(), 0);
    for (const std::int64_t wait_ns : {300'000, 3'400'000}) {
        const std::int64_t until = monotonic_ns() + wait_ns;
        while (monotonic_ns() < until) {
            waiter.wait(until);
        }
        CHECK(monotonic_ns() - until < 100 * kMillisecondNs);
    }
}

TEST_CASE("a wait that ends with a spin is over at its time, and nothing that arrived is missed") {
    Waiter waiter(100'000);
    Pipe pipe;
    waiter.add(pipe.read_end(), 3);
    std::int64_t least_late_ns = kSecondNs;
    constexpr std::int64_t spun_ns = 10'000;  // with thread sanitizer 6 µs; a sleep ends 40 µs late and more
    // The kernel may take the core away from any of them, but hardly from all.
    for (int i = 0; i < 200 && least_late_ns > spun_ns; ++i) {
        const std::int64_t until = monotonic_ns() + kMillisecondNs;
        CHECK(waiter.wait(until).empty());
        const std::int64_t late_ns = monotonic_ns() - until;
        CHECK(late_ns >= 0);
        least_late_ns = std::min(least_late_ns, late_ns);
    }
    CHECK(least_late_ns <= spun_ns);
    REQUIRE(write(pipe.write_end(), "x", 1) == 1);
    CHECK(waiter.wait(monotonic_ns() + kMillisecondNs).size() == 1);
}

TEST_CASE("an arrival at least a millisecond before a spin is reported at once") {
    Waiter waiter(kSecondNs);
    Pipe pipe;
    waiter.add(pipe.read_end(), 3);
    REQUIRE(write(pipe.write_end(), "x", 1) == 1);
    const std::int64_t until = monotonic_ns() + 5 * kSecondNs;
    CHECK(waiter.wait(until).size() == 1);
    CHECK(monotonic_ns() < until);
}

TEST_CASE("a removed descriptor is not reported") {
    Waiter waiter;
    Pipe pipe;
    waiter.add(pipe.read_end(), 0);
    REQUIRE(write(pipe.write_end(), "x", 1) == 1);
    waiter.remove(pipe.read_end());
    waiter.remove(pipe.read_end());
    waiter.remove(-1);
    CHECK(waiter.wait(0).empty());
}
