#include <memory>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "common/histogram.h"
#include "common/json_reader.h"
#include "common/json_writer.h"
#include "common/lag_bins.h"
#include "common/ledger.h"
#include "common/load.h"
#include "common/pacer.h"
#include "common/read_limit.h"
#include "common/topic_account.h"
#include "vectors.h"

using namespace hydra;
using nlohmann::json;

namespace {

void step_clock(const json& it) {
    const StepClock clock({.at_ns = it["at_ns"], .step_ns = it["step_ns"], .rate_ppb = it["rate_ppb"]});
    for (const json& row : it["times"]) {
        CAPTURE(row.dump());
        CHECK(clock.at_ns(row[0]) == row[1].get<std::int64_t>());
    }
    for (const json& row : it["readings"]) {
        CAPTURE(row.dump());
        CHECK(clock.monotonic_of(row[0]) == row[1].get<std::int64_t>());
    }
}

void pacer(const json& it) {
    const bool paced = it["rate"] != "max";
    Pacer pacer(paced ? std::optional(it["rate"].get<double>()) : std::nullopt, it["start_ns"], it["stop_ns"],
                it["burst"], Pacing::smooth,
                it.contains("messages") ? std::optional(it["messages"].get<std::uint64_t>()) : std::nullopt);
    for (const json& step : it["steps"]) {
        CAPTURE(step.dump());
        if (step.contains("advance")) {
            pacer.advance(step["advance"]);
        } else if (step.contains("stop_at_ns")) {
            pacer.stop_at(step["stop_at_ns"]);
        } else {
            const std::int64_t now_ns = step["at_ns"];
            const auto next = pacer.next_due_ns();
            std::vector<std::uint64_t> times(step["times"].size());
            pacer.times(times, now_ns);
            CHECK(pacer.done(now_ns) == step["done"].get<bool>());
            CHECK(pacer.due(now_ns) == step["due"].get<std::uint64_t>());
            CHECK((next ? json(*next) : json(nullptr)) == step["next_due_ns"]);
            CHECK(pacer.lag_ns(now_ns) == step["lag_ns"].get<std::int64_t>());
            CHECK(json(times) == step["times"]);
        }
    }
}

void load(const json& it) {
    std::vector<LoadPoint> points;
    for (const json& point : it["points"]) {
        points.push_back({.at_s = point[0], .rate = point[1]});
    }
    const LoadSchedule load(points);
    for (const json& row : it["due"]) {
        CAPTURE(row.dump());
        const std::int64_t expected =
            row[1].is_null() ? LoadSchedule::kNeverDueNs : row[1].get<std::int64_t>();
        CHECK(load.due_ns(row[0]) == expected);
    }
    for (const json& row : it["by"]) {
        CAPTURE(row.dump());
        CHECK(load.count_by(row[0]) == row[1].get<std::uint64_t>());
    }
}

Batch batch_of(const json& runs) {
    Batch batch;
    for (const json& run : runs) {
        const std::uint64_t first = run[2];
        for (std::uint64_t i = 0; i < run[3].get<std::uint64_t>(); ++i) {
            const Header header{run[0], run[1], first + i, 0};
            batch.add(&header, kHeaderBytes);
        }
    }
    return batch;
}

Traffic traffic_of(const json& value) {
    Traffic it;
    JsonReader fields(value);
    Traffic::describe(it, fields);
    fields.nothing_else();
    return it;
}

void traffic(const json& it) {
    json map = json::object();
    for (const char* name :
         {"seed", "topics", "topic_table", "topics_per_client", "keys", "key_table", "sizes", "size_table"}) {
        map[name] = it[name];
    }
    map["wildcard"] = false;
    const auto whole = std::make_shared<const Traffic>(traffic_of(map));
    REQUIRE(no_traffic(*whole).empty());
    const Id publisher = it["publisher"];
    const PublisherTraffic traffic(whole, publisher);
    for (const json& row : it["messages"]) {
        CAPTURE(row.dump());
        const std::uint64_t n = row[0];
        CHECK(traffic.topic(n) == row[1].get<std::uint32_t>());
        CHECK((whole->keys > 0 ? std::int64_t{traffic.key(n)} : -1) == row[2].get<std::int64_t>());
        CHECK((traffic.has_sizes() ? static_cast<std::int64_t>(traffic.size(n)) : -1) ==
              row[3].get<std::int64_t>());
    }
    for (const json& row : it["clients"]) {
        CHECK(topics_of(*whole, row[0]) == row[1].get<std::vector<std::uint32_t>>());
    }
    if (it["ranks"].empty()) {
        return;
    }
    const auto own = std::make_shared<const TopicSet>(whole->topics, topics_of(*whole, it["clients"][0][0]));
    TopicSequences sequences(traffic.topics(), own);
    for (const json& row : it["ranks"]) {
        CAPTURE(row.dump());
        CHECK(sequences.own(row[0]) == (row[1] == 1));
        CHECK(sequences.own_below(row[0]) == row[2].get<std::uint64_t>());
    }
    for (const json& row : it["own"]) {
        CAPTURE(row.dump());
        CHECK(sequences.at_rank(row[0]) == row[1].get<std::uint64_t>());
    }
}

void ledger(const json& it) {
    std::vector<PublisherEndpoint> publishers;
    for (const json& publisher : it["publishers"]) {
        publishers.push_back({.publisher = publisher});
    }
    std::vector<PublisherTotal> sent;
    for (const json& one : it["sent"]) {
        PublisherTotal total{.publisher = one["publisher"], .sent = one["sent"]};
        for (const json& range : one["unacknowledged"]) {
            total.unacknowledged.push_back({range[0], range[1]});
        }
        sent.push_back(std::move(total));
    }
    Ledger ledger(it["epoch"], publishers);
    std::unique_ptr<TopicAccount> topics;
    if (it.contains("traffic")) {
        const Configure command{.epoch = it["epoch"], .publishers = publishers};
        topics = std::make_unique<TopicAccount>(std::make_shared<SharedTraffic>(traffic_of(it["traffic"])),
                                                it["client"], command);
    }
    for (const json& batch : it["batches"]) {
        const Batch whole = batch_of(batch["runs"]);
        ledger.record(topics ? topics->enter(whole, batch["now_ns"], false) : whole, batch["now_ns"],
                      it["window_end_ns"], nullptr);
    }
    if (topics) {
        sent = topics->expect(sent);
    }
    CHECK(ledger.messages() == it["messages"].get<std::uint64_t>());
    CHECK(ledger.stale() == it["stale"].get<std::uint64_t>());
    CHECK(ledger.proven() == it["proven"].get<bool>());
    CHECK(ledger.marked(sent) == it["marked"].get<bool>());
    CHECK(ledger.has_last(sent) == it["has_last"].get<bool>());
    SubscriberReport report;
    report.ledgers = ledger.close(sent, it["member"]);
    if (topics) {
        topics->complete(report, ledger, sent);
    }
    if (report.hot) {
        CHECK(report.hot->expected == it["hot"]["expected"].get<std::uint64_t>());
        CHECK(report.hot->missing == it["hot"]["missing"].get<std::uint64_t>());
    }
    json found = json::array();
    for (const LedgerCounts& counts : report.ledgers) {
        JsonWriter::json object = JsonWriter::json::object();
        JsonWriter fields(object);
        LedgerCounts::describe(counts, fields);
        found.push_back(json(object));
    }
    CHECK(found == it["ledgers"]);
}

void lag(const json& it) {
    LagBins bins(it["start_ns"], it["stop_ns"]);
    for (const json& batch : it["batches"]) {
        bins.add(batch[0], batch[1]);
    }
    json found = json::array();
    for (const auto& mean : bins.means_us()) {
        found.push_back(mean ? json(*mean) : json(nullptr));
    }
    CHECK(found == it["means_us"]);
}

void read_limit(const json& it) {
    ReadLimit limit(it["rate"], it["begin_ns"]);
    for (const json& look : it["looks"]) {
        CAPTURE(look.dump());
        const std::int64_t now_ns = look[0];
        CHECK(limit.allowance(now_ns) == look[1].get<std::uint64_t>());
        const std::int64_t next_ns = limit.next_ns(now_ns);
        CHECK((next_ns == now_ns) == (look[1] > 0));
        CHECK((next_ns == kNeverNs || limit.allowance(next_ns + 1) > 0));
        limit.read(now_ns, look[2]);
    }
}

void histogram(const json& it) {
    LatencyRecorder recorder;
    for (const json& batch : it["batches"]) {
        std::vector<Run> runs;
        for (const json& time_ns : batch["times_ns"]) {
            runs.push_back({{1, 0, runs.size(), time_ns}, 1, kHeaderBytes});
        }
        recorder.record(runs, batch["now_ns"]);
    }
    const HistogramCounts found = recorder.histogram();
    CHECK(json(found.counts) == it["counts"]);
    CHECK(found.min_us == it["min_us"].get<std::int64_t>());
    CHECK(found.max_us == it["max_us"].get<std::int64_t>());
}

}  // namespace

TEST_CASE("the clock's vectors") {
    for_each_vector("clock", step_clock);
}

TEST_CASE("the histogram's vectors") {
    for_each_vector("histogram", histogram);
}

TEST_CASE("the pacer's vectors") {
    for_each_vector("pacer", pacer);
}

TEST_CASE("the load's vectors") {
    for_each_vector("load", load);
}

TEST_CASE("the ledger's vectors") {
    for_each_vector("ledger", ledger);
}

TEST_CASE("the traffic's vectors") {
    for_each_vector("traffic", traffic);
}

TEST_CASE("the vectors of the read limit") {
    for_each_vector("readlimit", read_limit);
}

TEST_CASE("the lag's vectors") {
    for_each_vector("lag", lag);
}
