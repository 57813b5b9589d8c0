// When a publisher sends what: an open-loop schedule. Pure, time is passed in.
//
// Message n is due at start + ⌊n · 10⁹ / rate⌋ whatever became of the messages before it. All of it is
// integer arithmetic on the rate as a fraction: the schedule does not drift, however long it runs. (As
// hydra/client/pacing.py.)
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/load.h"
#include "common/options.h"

namespace hydra {

// A publisher that is less than this behind at the end of the window still sends what was due before the end.
inline constexpr std::int64_t kGraceNs = 5'000'000;

class Pacer {
  public:
    // No rate means "max", which has no due times. A bursty schedule has the messages of each second, counted
    // from the start, due at its beginning. `messages` are the most of all; none: as many as the window
    // takes. With a load, message n is due when that says so, whatever the rate.
    Pacer(std::optional<double> rate, std::int64_t start_ns, std::int64_t stop_ns, std::uint64_t burst,
          Pacing pacing = Pacing::smooth, std::optional<std::uint64_t> messages = std::nullopt,
          LoadSchedule load = {});

    // How many messages may be sent now, at most burst.
    [[nodiscard]] std::uint64_t due(std::int64_t now_ns) const;

    // What the headers of the next times.size() messages carry: due times, or now_ns at rate max.
    void times(std::span<std::uint64_t> times, std::int64_t now_ns) const;

    // The library accepted the next `count` messages.
    void advance(std::uint64_t count) { sent_ += count; }

    // When the next message is due; none when the schedule has no more, and at rate max.
    [[nodiscard]] std::optional<std::int64_t> next_due_ns() const;

    // How far the next message is behind its due time; 0 when it is not, and at rate max.
    [[nodiscard]] std::int64_t lag_ns(std::int64_t now_ns) const;

    // Whether nothing will be due any more.
    [[nodiscard]] bool done(std::int64_t now_ns) const;

    // Whether all messages of a step that has a number of them are sent.
    [[nodiscard]] bool complete() const { return sent_ >= messages_; }

    // Ends the window at stop_ns if that is earlier; what was sent already stays sent.
    void stop_at(std::int64_t stop_ns);

    [[nodiscard]] bool paced() const { return paced_; }
    [[nodiscard]] std::uint64_t sent() const { return sent_; }
    [[nodiscard]] std::int64_t start_ns() const { return start_ns_; }
    // Messages of the whole schedule; at rate max, as many as there may be.
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
