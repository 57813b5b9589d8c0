#include <doctest/doctest.h>

#include <vector>

#include "common/subscriber_step.h"

using namespace hydra;

namespace {

// Batches of one message of publisher 0, each with this time in its header.
class OneAtATime : public SubscriberTransport {
  public:
    void configure(const Configure& command) override { epoch_ = command.epoch; }
    bool receive(Batch& batch) override {
        const Header header{epoch_, 0, sequence_++, static_cast<std::uint64_t>(sent_ns)};
        batch.add(&header, kHeaderBytes);
        return false;
    }
    [[nodiscard]] int wake_fd() const override { return -1; }
    void reconnect() override {}
    void leave() override {}

    std::int64_t sent_ns = 0;

  private:
    std::uint32_t epoch_ = 0;
    std::uint64_t sequence_ = 0;
};

}  // namespace

TEST_CASE("a message before the start has no latency, but its time on the step's clock") {
    Configure configure{.epoch = 1, .publishers = {{0, ""}}};
    OneAtATime transport;
    transport.configure(configure);
    LatencyRecorder latency;
    SubscriberStep step(configure, transport, latency);
    Batch batch;
    ReceivedTimeSeries time_series;
    const auto take = [&] {
        batch.reset(kBatchLimit);
        step.take(batch, time_series);
    };
    // The step's clock runs by a hundredth faster than this host's, whose wall clock does not matter.
    const HostClock line{.at_ns = monotonic_ns(), .step_ns = 5 * kSecondNs, .rate_ppb = kMaxRatePpb};
    const StepClock clock(line);
    transport.sent_ns = 4 * kSecondNs;
    take();
    const std::int64_t first_by_ns = clock.at_ns(monotonic_ns());
    step.start({.epoch = 1, .start_at_ns = 5 * kSecondNs, .stop_at_ns = 10'000 * kSecondNs, .clock = line});
    // A message that seems to be more than an hour early.
    transport.sent_ns = 100'000 * kSecondNs;
    take();
    transport.sent_ns = 5 * kSecondNs;
    take();
    const std::int64_t last_by_ns = clock.at_ns(monotonic_ns());
    step.finish({.epoch = 1, .publishers = {{.publisher = 0, .sent = 3}}, .drain_max_s = 1}, monotonic_ns());
    REQUIRE(step.drained(monotonic_ns()));
    const SubscriberReport report = step.report();
    CHECK(report.ledgers.at(0).received == 3);
    CHECK(report.first_ns >= 5 * kSecondNs);
    CHECK(report.first_ns <= first_by_ns);
    CHECK(report.last_ns >= first_by_ns);
    CHECK(report.last_ns <= last_by_ns);
    REQUIRE(report.latency.counts.size() == 4);
    CHECK(report.latency.counts[0] == bucket_index(-kHighestUs));
    CHECK(report.latency.min_us == -kHighestUs);
    CHECK(report.latency.max_us >= 0);
    CHECK(report.latency.max_us <= (last_by_ns - 5 * kSecondNs) / 1000);
}

TEST_CASE("without a start there is no step's clock") {
    Configure configure{.epoch = 1, .publishers = {{0, ""}}};
    OneAtATime transport;
    transport.configure(configure);
    LatencyRecorder latency;
    SubscriberStep step(configure, transport, latency);
    Batch batch;
    ReceivedTimeSeries time_series;
    step.take(batch, time_series);
    step.finish({.epoch = 1, .publishers = {{.publisher = 0, .sent = 1}}, .drain_max_s = 1}, monotonic_ns());
    REQUIRE(step.drained(monotonic_ns()));
    const SubscriberReport report = step.report();
    CHECK(report.batches == 1);
    CHECK(report.first_ns == 0);
    CHECK(report.last_ns == 0);
    CHECK(report.latency.counts.empty());
}

TEST_CASE("absences beyond the most reach to the last return") {
    for (const std::size_t count : {kMaxAbsent - 1, kMaxAbsent, kMaxAbsent + 1, kMaxAbsent + 9}) {
        CAPTURE(count);
        std::vector<Interval> absent;
        for (std::size_t n = 0; n < count; ++n) {
            const auto begin_ns = static_cast<std::int64_t>(10 * n);
            add_absence(absent, {begin_ns, begin_ns + 5});
        }
        CHECK(absent.size() == std::min(count, kMaxAbsent));
        CHECK(absent.back().begin_ns == static_cast<std::int64_t>(10 * (absent.size() - 1)));
        CHECK(absent.back().end_ns == static_cast<std::int64_t>(10 * (count - 1) + 5));
    }
}
