// Which sequences of an epoch the server acknowledged, which failed, and which have no answer yet: exact,
// whatever the order of the answers. Pure. (Python: hydra/client/ack_ledger.py.)
//
// Message n goes to partition n mod P, and a partition answers in order. The answers of a partition are
// therefore one growing range, and a run of them costs one comparison. Only failures and retries make more
// ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "common/messages/parts.h"
#include "common/range_set.h"

namespace hydra {

class AckLedger {
  public:
    explicit AckLedger(std::uint64_t partitions = 1) : partitions_(partitions), lanes_(partitions) {}

    // The library accepted the next `count` messages.
    void accept(std::uint64_t count) { sent_ += count; }

    // An answer to `count` (above 0) messages of one partition: first, first + P, first + 2 P, … The first
    // answer to a sequence counts. A later answer, or an answer to a sequence that was never accepted, only
    // increases `repeated`.
    void acknowledge(std::uint64_t first, std::uint64_t count) { answer(first, count, false); }
    void fail(std::uint64_t first, std::uint64_t count) { answer(first, count, true); }

    [[nodiscard]] std::uint64_t partitions() const { return partitions_; }
    [[nodiscard]] std::uint64_t sent() const { return sent_; }
    [[nodiscard]] std::uint64_t acknowledged() const { return acknowledged_; }
    [[nodiscard]] std::uint64_t failed() const { return failed_; }
    [[nodiscard]] std::uint64_t pending() const { return sent_ - acknowledged_ - failed_; }
    [[nodiscard]] std::uint64_t repeated() const { return repeated_; }

    // The failed and the pending sequences: sorted, disjoint, not adjacent.
    [[nodiscard]] std::vector<Range> unacknowledged() const;

  private:
    // One partition; its message k has sequence k · P + the partition's number.
    struct Lane {
        RangeSet answered;
        RangeSet failed;
    };

    void answer(std::uint64_t first, std::uint64_t count, bool failed);
    std::uint64_t enter(Lane& lane, Range run, bool failed);
    [[nodiscard]] std::vector<Range> unacknowledged(std::uint64_t lane) const;

    std::uint64_t partitions_;
    std::vector<Lane> lanes_;
    std::uint64_t sent_ = 0;
    std::uint64_t acknowledged_ = 0;
    std::uint64_t failed_ = 0;
    std::uint64_t repeated_ = 0;
};

}  // namespace hydra
