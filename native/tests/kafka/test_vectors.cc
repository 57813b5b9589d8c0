#include "common/ack_ledger.h"
#include "vectors.h"

using namespace hydra;
using nlohmann::json;

TEST_CASE("the acknowledgements' vectors") {
    for_each_vector("acks", [](const json& it) {
        AckLedger ledger(it["partitions"]);
        for (const json& act : it["acts"]) {
            if (act[0] == "accept") {
                ledger.accept(act[2]);
            } else if (act[0] == "acknowledge") {
                ledger.acknowledge(act[1], act[2]);
            } else {
                ledger.fail(act[1], act[2]);
            }
        }
        json found = json::array();
        for (const Range& range : ledger.unacknowledged()) {
            found.push_back({range.first, range.last});
        }
        CHECK(found == it["unacknowledged"]);
        CHECK(ledger.acknowledged() == it["acknowledged"].get<std::uint64_t>());
        CHECK(ledger.failed() == it["failed"].get<std::uint64_t>());
        CHECK(ledger.pending() == it["pending"].get<std::uint64_t>());
        CHECK(ledger.repeated() == it["repeated"].get<std::uint64_t>());
    });
}
