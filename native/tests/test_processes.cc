#include <doctest/doctest.h>
#include <fcntl.h>

#include "common/clock.h"
#include "common/processes.h"

using namespace hydra;

TEST_CASE("a pipe closes its ends once") {
    int read_end = -1;
    {
        Pipe pipe;
        read_end = pipe.read_end();
        pipe.close_write();
        pipe.close_write();
        CHECK(fcntl(read_end, F_GETFD) >= 0);
    }
    CHECK(fcntl(read_end, F_GETFD) < 0);
}

TEST_CASE("the step's clock is the controller's on its own host, and Unix time elsewhere") {
    Start start;
    start.wall_offset_ns = 42;
    start.boot_id = boot_id();
    CHECK(StepClock(start).offset_ns() == 42);
    CHECK_FALSE(StepClock(start).own());
    start.boot_id = "another";
    const std::int64_t apart = monotonic_ns() + StepClock(start).offset_ns() - wall_ns();
    CHECK(std::abs(apart) < kSecondNs / 10);
}
