#include <doctest/doctest.h>
#include <fcntl.h>

#include "common/linux_process.h"

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
