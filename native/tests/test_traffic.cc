#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common/topic_account.h"
#include "common/topic_sequences.h"
#include "common/traffic.h"

using namespace hydra;

namespace {

// The first topic has most messages, the last one few.
Traffic uneven(std::uint32_t topics, std::uint32_t per_client) {
    Traffic it{.seed = 7, .topics = topics, .topics_per_client = per_client};
    for (std::uint32_t topic = 0; topic < topics; ++topic) {
        it.topic_table.push_back({UINT32_MAX / (topic + 1), 0});
    }
    return it;
}

Configure with(const Traffic& traffic) {
    return {.epoch = 3, .publishers = {{0, ""}, {1, ""}}, .traffic = traffic};
}

}  // namespace

TEST_CASE("of the signalled topics every subscriber has one, and fewer would not do") {
    for (const std::uint32_t per_client : {1U, 3U, 10U, 11U}) {
        CAPTURE(per_client);
        const Traffic traffic{.topics = 11, .topics_per_client = per_client};
        const std::uint32_t signalled = signalled_topics(with(traffic));
        std::uint32_t last = 0;
        for (Id client = 0; client < 2000; ++client) {
            last = std::max(last, topics_of(traffic, client).front() + 1);
        }
        CHECK(last == signalled);
    }
    CHECK(signalled_topics(with({.topics = 9})) == 1);
    CHECK(signalled_topics(with({.topics = 9, .topics_per_client = 2, .wildcard = true})) == 1);
    CHECK(signalled_topics({}) == 1);
}

TEST_CASE("the topics to which a subscriber subscribes") {
    CHECK_FALSE(topic_filter({}, 4).numbered());
    CHECK_FALSE(topic_filter(with({.keys = 5}), 4).numbered());
    CHECK(topic_filter(with({.topics = 3}), 4) == TopicFilter{.topics = {0, 1, 2}});
    CHECK(topic_filter(with({.topics = 3, .wildcard = true}), 4) == TopicFilter{.wildcard = true});
    const Traffic part{.topics = 30, .topics_per_client = 2};
    CHECK(topic_filter(with(part), 4).topics == topics_of(part, 4));
    CHECK(topic_names("data", '.', 1) == std::vector<std::string>{"data"});
    CHECK(topic_names("data", '.', 3) == std::vector<std::string>{"data.0", "data.1", "data.2"});
}

TEST_CASE("tables that do not fit are rejected") {
    CHECK(no_traffic(uneven(5, 5)).empty());
    Traffic short_table = uneven(5, 2);
    short_table.topic_table.pop_back();
    CHECK_FALSE(no_traffic(short_table).empty());
    Traffic far_alias = uneven(5, 2);
    far_alias.topic_table[3].alias = 5;
    CHECK_FALSE(no_traffic(far_alias).empty());
    CHECK_FALSE(no_traffic({.topics = 2, .topics_per_client = 3}).empty());
    CHECK_FALSE(no_traffic({.sizes = {{100, 99}}}).empty());
    CHECK_FALSE(no_traffic({.keys = 1, .key_table = {{0, 0}, {0, 0}}}).empty());
    CHECK_FALSE(no_traffic({.size_table = {{0, 0}}}).empty());
}

TEST_CASE("ranks agree with counting, in whatever order they are asked for") {
    const auto traffic = std::make_shared<const Traffic>(uneven(20, 4));
    const PublisherTraffic of_publisher(traffic, 5);
    const auto own = topics_of(*traffic, 12);
    const auto set = std::make_shared<const TopicSet>(20, own);
    constexpr std::uint64_t kMost = 40'000;
    std::vector<std::uint64_t> own_below{0};
    std::vector<std::uint64_t> hot_below{0};
    std::vector<std::uint64_t> sequences;
    for (std::uint64_t n = 0; n < kMost; ++n) {
        const std::uint32_t topic = of_publisher.topic(n);
        const bool is_own = std::ranges::binary_search(own, topic);
        own_below.push_back(own_below.back() + is_own);
        hot_below.push_back(hot_below.back() + (is_own && topic < 2));
        if (is_own) {
            sequences.push_back(n);
        }
    }
    TopicSequences found(of_publisher.topics(), set);
    CHECK_FALSE(found.too_far(kMost));
    CHECK(found.too_far(UINT64_MAX));
    // Steps of 7919 visit every sequence, far apart from each other.
    for (std::uint64_t i = 0, n = 0; i < kMost; i += 13, n = (n + 13 * 7919) % kMost) {
        CAPTURE(n);
        REQUIRE(found.own_below(n) == own_below[n]);
        REQUIRE(found.hot_below(n) == hot_below[n]);
        REQUIRE(found.own(n) == (own_below[n + 1] > own_below[n]));
        REQUIRE(found.hot(n) == (hot_below[n + 1] > hot_below[n]));
    }
    REQUIRE(found.own_below(kMost) == sequences.size());
    for (std::uint64_t rank = 0; rank < sequences.size(); rank += 101) {
        CAPTURE(rank);
        REQUIRE(found.at_rank(rank) == sequences[rank]);
    }
}

TEST_CASE("the hot topics' latencies are counted apart, for a part of the topics and for all") {
    for (const std::uint32_t per_client : {3U, 0U}) {
        CAPTURE(per_client);
        const Traffic traffic = uneven(10, per_client);
        const Configure command = with(traffic);
        // Its topics include the hottest one.
        Id client = 0;
        while (topics_of(traffic, client).front() != 0) {
            ++client;
        }
        const auto own = topics_of(traffic, client);
        TopicAccount account(std::make_shared<SharedTraffic>(traffic), client, command);
        Ledger ledger(3, command.publishers);
        LatencyRecorder latency;
        const PublisherTraffic of_publisher(std::make_shared<const Traffic>(traffic), 1);
        std::int64_t expected = 0;
        std::int64_t hot = 0;
        Batch batch;
        for (std::uint64_t n = 0; n < 100; ++n) {
            const std::uint32_t topic = of_publisher.topic(n);
            if (std::ranges::binary_search(own, topic)) {
                const Header header{3, 1, n, topic == 0 ? 1'000'000U : 0U};
                batch.add(&header, 50);
                ++expected;
                hot += topic == 0;
            }
        }
        const Header probe{0, 0, 3, 0};
        batch.add(&probe, kHeaderBytes);
        const Header stale{2, 1, 5, 0};
        batch.add(&stale, kHeaderBytes);
        ledger.record(account.enter(batch, 5'000'000, true), 5'000'000, INT64_MAX, &latency);
        const std::vector<PublisherTotal> ranks = account.expect({{.publisher = 1, .sent = 100}});
        SubscriberReport report;
        report.ledgers = ledger.close(ranks);
        account.complete(report, ledger, ranks);
        CHECK(report.ledgers[0].received == static_cast<std::uint64_t>(expected));
        CHECK(report.ledgers[0].missing == 0);
        CHECK(report.ledgers[0].reordered == 0);
        CHECK(ledger.bytes() == static_cast<std::uint64_t>(expected) * 50);
        CHECK(ledger.stale() == 1);
        REQUIRE(report.hot);
        CHECK(report.hot->expected == static_cast<std::uint64_t>(hot));
        CHECK(report.hot->missing == 0);
        CHECK(report.hot->latency.counts == std::vector<std::int64_t>{bucket_index(4000), hot});
        CHECK(hot > 30);
        CHECK(hot < expected);
    }
}
