#include <doctest/doctest.h>

#include <utility>

#include "common/report_batches.h"
#include "ranges.h"

using namespace hydra;

namespace {

SubscriberReport subscriber_report(std::size_t ranges = 0) {
    SubscriberReport it;
    it.ledgers.push_back({.publisher = 9, .missing_ranges = separate_ranges(ranges)});
    return it;
}

// The reports of these clients in one message.
BatchPart part(const Ids& ids, const SubscriberReport& report = subscriber_report()) {
    BatchBuilder builder;
    for (const Id id : ids) {
        builder.add(id, report, false);
    }
    BatchColumns it = builder.take();
    return {ids, it.columns, std::move(it.payload)};
}

}  // namespace

TEST_CASE("reports wait for each other and are one batch, by id") {
    ReportBatches batching({1, 2, 3});
    for (const Id id : {3, 1, 2}) {
        CHECK(batching.add(9, part({id}), 100 * id).empty());
        CHECK(batching.holds(id));
        CHECK(batching.of(id) == nullptr);
    }
    CHECK(batching.due_ns() == 300 + 500 * kMillisecondNs);
    const ReportBatch* made = batching.flush(9);
    CHECK(made->head.ids == Ids{1, 2, 3});
    CHECK(made->head.epoch == 9);
    CHECK(batching.of(2) == made);
    CHECK(batching.due_ns() == kNeverNs);
    CHECK(batching.flush(9) == nullptr);
    batching.clear();
    CHECK_FALSE(batching.holds(2));
}

TEST_CASE("a batch is full before the next report would make it too long") {
    Ids ids(400);
    for (Id id = 0; id < ids.size(); ++id) {
        ids[id] = id;
    }
    ReportBatches batching(ids);
    const std::size_t most = kBatchBytes / part({1}, subscriber_report(256)).bytes();
    std::vector<const ReportBatch*> made;
    for (Id id = 0; id < most + 2; ++id) {
        for (const ReportBatch* full : batching.add(1, part({id}, subscriber_report(256)), 0)) {
            made.push_back(full);
        }
    }
    REQUIRE(made.size() == 1);
    CHECK(made.front()->head.ids.size() == most);
    CHECK(made.front()->payload.size() <= kBatchBytes);
    CHECK(batching.flush(1)->head.ids.size() == 2);
    CHECK(batching.of(0) == made.front());
}

TEST_CASE("a report that is too long by itself goes alone") {
    ReportBatches batching({1, 2, 3});
    SubscriberReport longest;
    for (int i = 0; i < 300; ++i) {
        longest.ledgers.push_back(subscriber_report(256).ledgers.front());
    }
    CHECK(batching.add(1, part({1}), 0).empty());
    const auto full = batching.add(1, part({2}, longest), 0);
    REQUIRE(full.size() == 2);
    CHECK(full[0]->head.ids == Ids{1});
    CHECK(full[1]->head.ids == Ids{2});
}
