#include <doctest/doctest.h>

#include <string>

#include "common/reply_aggregation.h"

using namespace hydra;

TEST_CASE("equal replies are sent once, with their clients, ascending and each once") {
    ReplyAggregator<std::string> gathering;
    CHECK(gathering.due_ns() == kNeverNs);
    gathering.add("b", 3, 100);
    gathering.add("a", 2, 200);
    gathering.add("b", 1, 300);
    gathering.add("b", 3, 400);
    CHECK(gathering.due_ns() == 100 + kGatherNs);
    std::string text;
    gathering.flush([&](const std::string& what, const Ids& ids) {
        text += what;
        for (const Id id : ids) {
            text += std::to_string(id);
        }
    });
    CHECK(text == "a2b13");
    CHECK(gathering.due_ns() == kNeverNs);
    gathering.add("a", 1, 0);
    gathering.clear();
    CHECK(gathering.due_ns() == kNeverNs);
}
