// When a publisher sends a message: an open-loop schedule. Pure, time is passed in.
//
// Message n is due at start + ⌊n · 10⁹ / rate⌋, whatever happens to the messages before it. The rate is a
// fraction and all arithmetic is in integers, so the schedule does not drift, however long it runs. (Python:
// hydra/client/pacing.py.)
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/load.h"
#include "common/options.h"

namespace hydra {

// A publisher that lags by less than this at the end of the window still sends what was due before the end.
inline constexpr std::int64_t kGraceNs = 5'000'000;

class Pacer {
  public:
    // No rate means "max", which has no due times. A bursty schedule has the messages of each second, counted
    // from the start, due at its beginning. `messages` is the most messages in the step; none: as many as the
    // window allows. With a load, the load decides when message n is due, whatever the rate.
    Pacer(std::optional<double> rate, std::int64_t start_ns, std::int64_t stop_ns, std::uint64_t burst,
          Pacing pacing = Pacing::smooth, std::optional<std::uint64_t> messages = std::nullopt,
          LoadSchedule load = {});

    // The number of messages that may be sent now, at most burst.
    [[nodiscard]] std::uint64_t due(std::int64_t now_ns) const;

    // The times in the headers of the next times.size() messages: due times, or now_ns at rate max.
    void times(std::span<std::uint64_t> times, std::int64_t now_ns) const;

    // The library accepted the next `count` messages.
    void advance(std::uint64_t count) { sent_ += count; }

    // When the next message is due; none if the schedule has no more, and at rate max.
    [[nodiscard]] std::optional<std::int64_t> next_due_ns() const;

    // How far now_ns is past the due time of the next message; 0 before it, and at rate max.
    [[nodiscard]] std::int64_t lag_ns(std::int64_t now_ns) const;

    // Whether no message will be due any more.
    [[nodiscard]] bool done(std::int64_t now_ns) const;

    // Whether all messages of a step with a limited number were sent.
    [[nodiscard]] bool complete() const { return sent_ >= messages_; }

    // Ends the window at stop_ns if that is earlier; messages that were sent stay sent.
    void stop_at(std::int64_t stop_ns);

    [[nodiscard]] bool paced() const { return paced_; }
    [[nodiscard]] std::uint64_t sent() const { return sent_; }
    [[nodiscard]] std::int64_t start_ns() const { return start_ns_; }
    // Messages of the whole schedule; at rate max, the most messages allowed.
    [[nodiscard]] std::uint64_t total() const { return total_; }

  private:
    [[nodiscard]] std::uint64_t count_by(std::int64_t now_ns) const;
    [[nodiscard]] std::uint64_t scheduled() const;
    [[nodiscard]] std::int64_t due_ns(std::uint64_t n) const;

    std::int64_t start_ns_;
    std::int64_t stop_ns_;
    std::uint64_t burst_;
    std::uint64_t messages_;
    bool paced_;
    bool bursty_;
    LoadSchedule load_;
    // Message n is due numerator · n / denominator ns after the start, rounded down.
    std::uint64_t numerator_ = 0;
    std::uint64_t denominator_ = 1;
    std::uint64_t total_ = 0;
    std::uint64_t sent_ = 0;
};

}  // namespace hydra
