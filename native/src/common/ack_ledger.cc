#include "common/ack_ledger.h"

#include <algorithm>

namespace hydra {
namespace {

// The ranges in order; adjacent ones become one.
std::vector<Range> joined(std::vector<Range> ranges) {
    std::ranges::sort(ranges, {}, &Range::first);
    std::vector<Range> result;
    for (const Range& range : ranges) {
        if (!result.empty() && result.back().last + 1 >= range.first) {
            result.back().last = std::max(result.back().last, range.last);
        } else {
            result.push_back(range);
        }
    }
    return result;
}

}  // namespace

void AckLedger::answer(std::uint64_t first, std::uint64_t count, bool failed) {
    const std::uint64_t accepted = first < sent_ ? (sent_ - 1 - first) / partitions_ + 1 : 0;
    const std::uint64_t known = std::min(count, accepted);
    repeated_ += count - known;
    if (known == 0) {
        return;
    }
    const std::uint64_t index = first / partitions_;
    const std::uint64_t fresh = enter(lanes_[first % partitions_], {index, index + known - 1}, failed);
    (failed ? failed_ : acknowledged_) += fresh;
    repeated_ += known - fresh;
}

// The number of messages of the run that had no answer before.
std::uint64_t AckLedger::enter(Lane& lane, Range run, bool failed) {
    if (failed) {
        for (const Range& fresh : lane.answered.gaps(run.first, run.last)) {
            lane.failed.add(fresh.first, fresh.last);
        }
    }
    return lane.answered.add(run.first, run.last);
}

std::vector<Range> AckLedger::unacknowledged() const {
    if (partitions_ == 1) {
        return unacknowledged(0);
    }
    // With several partitions, neighbouring sequences are in different lanes: each becomes a range, and these
    // are joined.
    std::vector<Range> sequences;
    for (std::uint64_t lane = 0; lane < partitions_; ++lane) {
        for (const Range& range : unacknowledged(lane)) {
            for (std::uint64_t k = range.first; k <= range.last; ++k) {
                const std::uint64_t sequence = k * partitions_ + lane;
                sequences.push_back({sequence, sequence});
            }
        }
    }
    return joined(std::move(sequences));
}

// Places in the lane, not sequences.
std::vector<Range> AckLedger::unacknowledged(std::uint64_t lane) const {
    if (sent_ <= lane) {
        return {};
    }
    const std::uint64_t last = (sent_ - 1 - lane) / partitions_;
    std::vector<Range> found = lanes_[lane].answered.gaps(0, last);
    found.insert(found.end(), lanes_[lane].failed.ranges().begin(), lanes_[lane].failed.ranges().end());
    return joined(std::move(found));
}

}  // namespace hydra
