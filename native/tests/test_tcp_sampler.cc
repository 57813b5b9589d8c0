// The result of two readings of TCP connections; tests/client/test_connections.py has the same cases.
#include <doctest/doctest.h>

#include "common/tcp_sampler.h"

namespace hydra {
namespace {

constexpr TcpConnection kNew{.inode = 5, .sent_bytes = 1000};
constexpr TcpConnection kWaits{.inode = 5, .unsent_bytes = 500, .sent_bytes = 2000, .busy_us = 800'000};

Connections after_a_second(const TcpConnection& now) {
    return between({{1, kNew}}, {{1, now}}, kSecondNs);
}

TEST_CASE("a connection with more to send than the way takes is limited by the network") {
    CHECK(after_a_second(kWaits) == Connections{1, 0, 1, 500, 0});
    TcpConnection quiet = kWaits;
    quiet.busy_us = 499'999;
    CHECK(after_a_second(quiet) == Connections{1, 0, 0, 500, 0});
}

TEST_CASE("a connection whose receive window was closed half of the time is limited by its reader") {
    TcpConnection it = kWaits;
    it.reader_us = 500'000;
    CHECK(after_a_second(it) == Connections{1, 1, 0, 500, 0});
    it.reader_us = 400'000;
    CHECK(after_a_second(it) == Connections{1, 0, 0, 500, 0});
}

TEST_CASE("a connection that sends nothing does not count") {
    TcpConnection it = kNew;
    it.unread_bytes = 70;
    CHECK(after_a_second(it) == Connections{0, 0, 0, 0, 70});
}

TEST_CASE("the kernel reports the connections of this namespace") {
    CHECK(established());
}

}  // namespace
}  // namespace hydra
