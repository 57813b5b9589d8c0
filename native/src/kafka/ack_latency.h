// How long acknowledgements take: from the hand-over of a message to librdkafka to its delivery report. Times
// are kept by chunk, until all messages of a chunk are answered. Pure. (Python: hydra/client/ack_ledger.py.)
#pragma once

#include <cstdint>
#include <deque>

#include "common/histogram.h"

namespace hydra {

class AckLatency {
  public:
    // A new epoch, whose sequences begin at 0.
    void begin();

    // The library has accepted the next `count` messages, handed over at `now_ns`.
    void handed_over(std::uint64_t count, std::int64_t now_ns);

    // An answer to `count` messages: first, first + stride, first + 2 · stride, … They are only counted if
    // they arrived. Messages that were not handed over are ignored.
    void answered(std::uint64_t first, std::uint64_t count, std::uint64_t stride, std::int64_t now_ns,
                  bool arrived);

    [[nodiscard]] HistogramCounts histogram() const { return recorder_.histogram(); }
    [[nodiscard]] std::size_t chunks() const { return chunks_.size(); }

  private:
    struct Chunk {
        std::uint64_t end;   // one more than its last sequence
        std::uint64_t open;  // messages without an answer
        std::int64_t time_ns;
    };

    std::deque<Chunk> chunks_;
    std::uint64_t sent_ = 0;
    LatencyRecorder recorder_;
};

}  // namespace hydra
