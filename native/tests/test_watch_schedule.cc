#include <doctest/doctest.h>

#include <vector>

#include "common/watch_schedule.h"

using namespace hydra;

namespace {

constexpr std::int64_t kBegin = 1000 * kSecondNs;

// A relay with the test's own time, and the messages that it sent.
struct Watcher {
    std::vector<HostReadings> messages;
    int opened = 0;
    std::size_t most_samples = kMaxSamples;  // that fit into a message
    WatchSchedule watching{{3, 4},
                           [this] {
                               ++opened;
                               return [](std::int64_t now_ns, bool host) {
                                   Sample it{.time_ns = now_ns};
                                   if (host) {
                                       it.host.emplace();
                                   }
                                   return it;
                               };
                           },
                           [this](const HostReadings& it) {
                               if (it.samples.size() > most_samples) {
                                   return false;
                               }
                               messages.push_back(it);
                               return true;
                           }};

    // Obeys at this time, in ms; before that, it does what is due, and only wakes for it.
    void at(std::int64_t ms, const Watch& watch) {
        live_until(ms);
        watching.obey(watch, kBegin + ms * kMillisecondNs);
    }

    void live_until(std::int64_t ms) {
        while (watching.due_ns() <= kBegin + ms * kMillisecondNs) {
            watching.work(watching.due_ns());
        }
    }

    [[nodiscard]] std::vector<std::int64_t> sampled_ms() const {
        std::vector<std::int64_t> times;
        for (const HostReadings& message : messages) {
            for (const Sample& sample : message.samples) {
                times.push_back((sample.time_ns - kBegin) / kMillisecondNs);
            }
        }
        return times;
    }
};

Watch watch(std::uint32_t epoch, double every_s, bool host = true) {
    return {.ids = {}, .epoch = epoch, .every_s = every_s, .host = host};
}

Watch end(std::uint32_t epoch) {
    return watch(epoch, 0, false);
}

using Times = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("samples are sent within a second, and at once when the watch ends") {
    Watcher it;
    CHECK(it.watching.due_ns() == kNeverNs);
    it.at(0, watch(7, 0.25));
    it.live_until(1700);
    REQUIRE(it.messages.size() == 1);
    CHECK(it.messages[0].ids == Ids{3, 4});
    CHECK(it.messages[0].epoch == 7);
    CHECK(it.sampled_ms() == Times{0, 250, 500, 750, 1000});
    it.at(1700, end(7));
    CHECK(it.messages.size() == 2);
    CHECK(it.sampled_ms() == Times{0, 250, 500, 750, 1000, 1250, 1500});
    CHECK(it.watching.due_ns() == kNeverNs);
}

TEST_CASE("rare samples are also sent within a second") {
    Watcher it;
    it.at(0, watch(7, 5));
    it.live_until(5999);
    CHECK(it.sampled_ms() == Times{0});
    it.live_until(6000);
    CHECK(it.sampled_ms() == Times{0, 5000});
}

TEST_CASE("an end is always answered, and nothing begins that epoch again") {
    Watcher it;
    it.at(0, end(7));
    it.at(2000, end(7));
    REQUIRE(it.messages.size() == 2);
    CHECK(it.messages[1].epoch == 7);
    CHECK(it.messages[1].samples.empty());
    it.at(3000, watch(7, 0.25));
    CHECK(it.watching.due_ns() == kNeverNs);
    it.at(3000, watch(8, 0.25));
    CHECK(it.watching.due_ns() != kNeverNs);
}

TEST_CASE("a watch that is repeated changes nothing; 30 s after the last it ends without a word") {
    Watcher it;
    it.at(0, watch(1, 1));
    it.at(20'500, watch(1, 1));
    it.live_until(90'000);
    CHECK(it.opened == 1);
    CHECK(it.sampled_ms().size() == 50);
    CHECK(it.sampled_ms().back() == 49'000);
    CHECK(it.watching.due_ns() == kNeverNs);
    it.at(90'000, end(1));
    CHECK(it.messages.back().samples.empty());
}

TEST_CASE("of an epoch the last word counts") {
    Watcher it;
    it.at(0, watch(1, 1, false));
    it.at(500, watch(1, 0.1, true));
    it.at(1250, end(1));
    CHECK(it.sampled_ms() == Times{0, 1000, 1100, 1200});
    CHECK_FALSE(it.messages.at(0).samples.at(0).host);
    CHECK(it.messages.back().samples.back().host);
    CHECK(it.opened == 1);
}

TEST_CASE("a higher epoch begins a new watch, a lower one is ignored") {
    Watcher it;
    it.at(0, watch(5, 0.25));
    it.at(100, watch(6, 0.25));
    it.at(200, end(5));
    it.at(200, watch(5, 0.01));
    CHECK(it.messages.empty());
    it.at(300, end(6));
    REQUIRE(it.messages.size() == 1);
    CHECK(it.messages[0].epoch == 6);
    CHECK(it.sampled_ms() == Times{100});
    CHECK(it.opened == 2);
}

TEST_CASE("missed samples are skipped") {
    Watcher it;
    it.at(0, watch(1, 0.25));
    it.live_until(0);
    it.watching.work(kBegin + 5600 * kMillisecondNs);
    it.at(6200, end(1));
    CHECK(it.sampled_ms() == Times{0, 5600, 5750, 6000});
}

TEST_CASE("a message holds a limited number of samples, however often they are taken") {
    Watcher it;
    it.at(0, watch(1, 1e-9));
    it.at(1000, end(1));
    CHECK(it.messages.size() == 2);
    CHECK(it.messages[0].samples.size() == kMaxSamples);
    CHECK(it.sampled_ms().size() == 101);
}

TEST_CASE("what does not fit into one message goes out in several, in order") {
    Watcher it;
    it.most_samples = 2;
    it.at(0, watch(1, 0.25));
    it.live_until(1000);
    CHECK(it.messages.size() == 3);
    CHECK(it.sampled_ms() == Times{0, 250, 500, 750, 1000});
    // A sample that is too long by itself is left out, but the end is still answered.
    it.most_samples = 0;
    it.at(1300, end(1));
    CHECK(it.messages.size() == 4);
    CHECK(it.messages.back().samples.empty());
}
