// Whether messages are accepted all the time.
#include <doctest/doctest.h>

#include "common/acceptance.h"

TEST_CASE("the longest time without an accepted message is known") {
    hydra::ProgressWatch watch(100);
    watch.look(150, 1);
    watch.look(250, 1);
    CHECK(watch.longest_ns() == 100);
    watch.look(260, 2);
    watch.look(300, 3);
    CHECK(watch.longest_ns() == 110);
    watch.look(900, 3);
    CHECK(watch.longest_ns() == 600);
}
