// How long acknowledgements take: from the hand-over of a message to librdkafka to the report of its
// delivery. Times are kept by chunk, until all of a chunk are answered. Pure. (As
// hydra/client/ack_ledger.py.)
#pragma once

#include <cstdint>
#include <deque>

#include "common/histogram.h"

namespace hydra {

class AckLatency {
  public:
    // A new epoch, whose sequences begin at 0.
    void begin();

    // The library has accepted the next `count` messages, which it was given at `now_ns`.
    void handed_over(std::uint64_t count, std::int64_t now_ns);

    // An answer to `count` messages: first, first + stride, first + 2 · stride, … Only those of messages that
    // arrived are counted. What was not handed over is ignored.
    void answered(std::uint64_t first, std::uint64_t count, std::uint64_t stride, std::int64_t now_ns,
                  bool arrived);

    [[nodiscard]] HistogramCounts histogram() const { return recorder_.histogram(); }
    [[nodiscard]] std::size_t chunks() const { return chunks_.size(); }

  private:
    struct Chunk {
        std::uint64_t end;   // the sequence behind its last one
        std::uint64_t open;  // messages without an answer
        std::int64_t time_ns;
    };

    std::deque<Chunk> chunks_;
    std::uint64_t sent_ = 0;
    LatencyRecorder recorder_;
};

}  // namespace hydra
