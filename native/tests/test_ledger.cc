#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "common/ledger.h"

using namespace hydra;

namespace {

constexpr std::int64_t kEnd = 1'000'000;

Batch batch_of(const std::vector<Header>& headers, std::size_t size = 24) {
    Batch batch;
    for (const Header& header : headers) {
        batch.add(&header, size);
    }
    return batch;
}

std::size_t record(Ledger& ledger, const std::vector<Header>& headers, std::int64_t now_ns = 0) {
    LatencyRecorder latency;
    return ledger.record(batch_of(headers), now_ns, kEnd, &latency);
}

std::vector<Header> run(std::uint32_t epoch, Id publisher, std::uint64_t first, std::uint64_t last) {
    std::vector<Header> headers;
    for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
        headers.push_back({epoch, publisher, sequence, 0});
    }
    return headers;
}

}  // namespace

TEST_CASE("the account of a step") {
    Ledger ledger(6, {{100, ""}, {101, ""}});
    record(ledger, run(6, 100, 0, 9));
    record(ledger, run(6, 100, 5, 5));
    record(ledger, run(6, 100, 20, 49));
    record(ledger, run(6, 101, 3, 7));
    record(ledger, run(5, 101, 0, 3));
    record(ledger, run(6, 666, 0, 5));
    const auto ledgers = ledger.close({{100, 60, {}}, {101, 10, {}}, {102, 3, {}}});
    REQUIRE(ledgers.size() == 3);
    CHECK(ledgers[0] == LedgerCounts{.publisher = 100,
                                     .received = 40,
                                     .in_window = 40,
                                     .missing = 20,
                                     .missing_ranges = {{10, 19}, {50, 59}},
                                     .truncated = false,
                                     .duplicates = 1});
    CHECK(ledgers[1].missing_ranges == std::vector<Range>{{0, 2}, {8, 9}});
    CHECK(ledgers[2].missing_ranges == std::vector<Range>{{0, 2}});
    CHECK(ledger.stale() == 10);
    CHECK(ledger.messages() == 46);
}

TEST_CASE("what is not expected is extra") {
    Ledger ledger(1, {{0, ""}});
    for (std::uint64_t n = 0; n < 100; ++n) {
        if (n != 7 && n != 8 && n != 30) {
            record(ledger, run(1, 0, n, n));
        }
    }
    const auto counts = ledger.close({{0, 100, {{8, 9}, {40, 44}}}}).at(0);
    CHECK(counts.received == 91);
    CHECK(counts.missing == 2);
    CHECK(counts.missing_ranges == std::vector<Range>{{7, 7}, {30, 30}});
    CHECK(counts.extra == 6);
}

TEST_CASE("the first batch after the window freezes what came inside it") {
    Ledger ledger(1, {{0, ""}});
    record(ledger, run(1, 0, 0, 9), kEnd);
    record(ledger, run(1, 0, 20, 29), kEnd + 1);
    record(ledger, run(1, 0, 10, 19), kEnd + 2);
    const auto counts = ledger.close({{0, 30, {}}}).at(0);
    CHECK(counts.received == 30);
    CHECK(counts.in_window == 10);
    CHECK(counts.reordered == 10);
}

TEST_CASE("only a probe of this epoch or later, of every publisher, proves the path") {
    Ledger ledger(5, {{1, ""}, {2, ""}});
    record(ledger, {{0, 1, 4, 0}, {0, 2, 6, 0}, {0, 3, 9, 0}});
    CHECK_FALSE(ledger.proven());
    record(ledger, {{0, 1, 5, 0}, {0, 1, 5, 0}});
    CHECK(ledger.proven());
    CHECK(ledger.stale() == 0);
}

TEST_CASE("end markers are no data and no probes, and only those of this epoch count") {
    constexpr std::uint64_t kMark = std::uint64_t{1} << 63;
    const std::vector<PublisherTotal> both = {{1, 10, {}}, {2, 10, {}}};
    Ledger ledger(5, {{1, ""}, {2, ""}});
    CHECK(record(ledger, {{0, 1, kMark | 4, 0}, {0, 2, kMark | 6, 0}, {0, 3, kMark | 5, 0}}) == 0);
    CHECK_FALSE(ledger.proven());
    CHECK_FALSE(ledger.marked(both));
    record(ledger, {{0, 1, kMark | 5, 0}, {0, 1, kMark | 5, 0}});
    CHECK_FALSE(ledger.marked(both));
    CHECK(ledger.marked({{1, 10, {}}}));
    CHECK_FALSE(ledger.marked({{3, 10, {}}}));
    CHECK_FALSE(ledger.marked({}));
    record(ledger, {{0, 2, kMark | 5, 0}});
    CHECK(ledger.marked(both));
    CHECK(ledger.stale() == 0);
    CHECK(ledger.messages() == 0);
    CHECK_FALSE(ledger.proven());
}

TEST_CASE("nothing to listen to is proven at once") {
    CHECK(Ledger(1, {}).proven());
}

TEST_CASE("the last expected sequence") {
    Ledger ledger(1, {{0, ""}});
    CHECK(ledger.has_last({{0, 0, {}}}));
    CHECK_FALSE(ledger.has_last({{0, 10, {}}}));
    record(ledger, run(1, 0, 7, 7));
    CHECK_FALSE(ledger.has_last({{0, 10, {}}}));
    CHECK(ledger.has_last({{0, 10, {{8, 9}}}}));
    CHECK_FALSE(ledger.has_last({{0, 10, {}}, {9, 1, {}}}));
}

TEST_CASE("the list of missing ranges is limited, and the report shows it") {
    Ledger ledger(1, {{0, ""}});
    for (std::uint64_t n = 1; n < 1200; n += 2) {
        record(ledger, run(1, 0, n, n));
    }
    const auto counts = ledger.close({{0, 1200, {}}}).at(0);
    CHECK(counts.missing == 600);
    CHECK(counts.truncated);
    CHECK(counts.missing_ranges.size() == kMaxMissingRanges);
    CHECK(counts.missing_ranges.back() == Range{510, 510});
}

TEST_CASE("sequences beyond 63 bits are no messages of ours") {
    Ledger ledger(1, {{0, ""}});
    CHECK(record(ledger, {{1, 0, std::uint64_t{1} << 63, 0}, {1, 0, UINT64_MAX, 0}}) == 0);
    CHECK(ledger.stale() == 2);
}

TEST_CASE("bytes and latency are of the epoch's messages only") {
    Ledger ledger(1, {{0, ""}});
    LatencyRecorder latency;
    const Batch batch = batch_of({{1, 0, 0, 1000}, {2, 0, 1, 2000}, {1, 0, 0, 3000}}, 100);
    CHECK(ledger.record(batch, 5000, kEnd, &latency) == 2);
    CHECK(ledger.bytes() == 200);
    CHECK(latency.histogram().counts == std::vector<std::int64_t>{2, 1, 4, 1});
}

TEST_CASE("mixed batches agree with sets of numbers") {
    for (unsigned seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        Ledger ledger(3, {{0, ""}, {1, ""}});
        std::map<Id, std::set<std::uint64_t>> seen;
        std::map<Id, std::set<std::uint64_t>> in_window;
        std::uint64_t messages = 0;
        std::uint64_t stale = 0;
        for (int round = 0; round < 30; ++round) {
            const std::int64_t now_ns = round < 20 ? 1 : kEnd + 1;
            std::vector<Header> headers;
            std::uint64_t sequence = random() % 200;
            for (unsigned i = random() % 40; i > 0; --i) {
                sequence = random() % 4 == 0 ? random() % 200 : sequence + 1;
                headers.push_back({random() % 9 == 0 ? 2U : 3U,
                                   static_cast<Id>(random() % 12 == 0 ? random() % 3 : 0), sequence, 0});
            }
            record(ledger, headers, now_ns);
            for (const Header& header : headers) {
                if (header.epoch != 3 || header.publisher > 1) {
                    ++stale;
                    continue;
                }
                ++messages;
                seen[header.publisher].insert(header.sequence);
                if (round < 20) {
                    in_window[header.publisher].insert(header.sequence);
                }
            }
        }
        CHECK(ledger.messages() == messages);
        CHECK(ledger.stale() == stale);
        PublisherTotal sent{0, random() % 300, {}};
        for (std::uint64_t n = random() % 20; n + 10 < sent.sent; n += 20 + random() % 40) {
            sent.unacknowledged.push_back({n, n + random() % 10});
        }
        std::uint64_t received = 0;
        std::uint64_t expected = 0;
        std::uint64_t inside = 0;
        for (std::uint64_t n = 0; n < sent.sent; ++n) {
            bool vouched = true;
            for (const Range& range : sent.unacknowledged) {
                vouched = vouched && !(range.first <= n && n <= range.last);
            }
            expected += vouched;
            received += vouched && seen[0].contains(n);
            inside += vouched && in_window[0].contains(n);
        }
        const auto counts = ledger.close({sent}).at(0);
        CHECK(counts.received == received);
        CHECK(counts.missing == expected - received);
        CHECK(counts.in_window == inside);
        CHECK(counts.extra == seen[0].size() - received);
    }
}
