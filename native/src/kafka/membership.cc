#include "kafka/membership.h"

#include <algorithm>

#include "common/clock.h"

namespace hydra {
namespace {

// If a member dies, its successor reads again at most what the member has read in this time.
constexpr std::int64_t kCommitEveryNs = 5 * kSecondNs;
constexpr std::int64_t kAskEveryNs = 200 * kMillisecondNs;

std::int64_t at(const Offsets& offsets, std::int32_t partition, std::int64_t otherwise) {
    const auto found = offsets.find(partition);
    return found == offsets.end() ? otherwise : found->second;
}

}  // namespace

Offsets Membership::step(const Offsets& begin, std::int64_t now_ns) {
    begin_ = begin;
    left_.clear();
    counting_ = false;
    if (rebalanced_.reported) {  // otherwise a start was repeated, and what it cost belongs to this step
        rebalanced_ = {};
    }
    if (!assigned_) {
        unassigned_ns_ = now_ns;
    }
    Offsets moved;
    for (auto& [partition, position] : positions_) {
        if (const std::int64_t start = at(begin_, partition, position); start != position) {
            moved[partition] = position = start;
        }
    }
    return moved;
}

void Membership::lost(std::int64_t now_ns) {
    if (assigned_) {
        unassigned_ns_ = now_ns;
    }
    assigned_ = false;
    positions_.clear();
}

const Offsets& Membership::given(std::span<const std::int32_t> partitions, const Offsets& committed,
                                 std::int64_t now_ns) {
    if (!assigned_) {
        rebalanced_.ns += now_ns - unassigned_ns_;
        ++rebalanced_.times;
    }
    assigned_ = true;
    positions_.clear();
    committed_.clear();
    for (const std::int32_t partition : partitions) {
        positions_[partition] = std::max(at(begin_, partition, 0), at(committed, partition, 0));
    }
    committed_ = committed;
    commit_at_ns_ = now_ns + kCommitEveryNs;
    return positions_;
}

void Membership::read_until(std::int32_t partition, std::int64_t offset) {
    if (const auto position = positions_.find(partition); position != positions_.end()) {
        position->second = offset;
    }
}

Offsets Membership::uncommitted(bool now, std::int64_t now_ns) {
    Offsets changed;
    if (now_ns < (now ? again_at_ns_ : commit_at_ns_)) {
        return changed;
    }
    commit_at_ns_ = now_ns + kCommitEveryNs;
    for (const auto& [partition, position] : positions_) {
        if (at(committed_, partition, at(begin_, partition, -1)) != position) {
            changed[partition] = committed_[partition] = position;
        }
    }
    return changed;
}

void Membership::refused(std::int64_t now_ns) {
    committed_.clear();
    again_at_ns_ = now_ns + kAskEveryNs;
}

std::uint64_t Membership::own_left(const Offsets& ends) const {
    std::uint64_t waiting = 0;
    for (const auto& [partition, position] : positions_) {
        waiting += static_cast<std::uint64_t>(std::max<std::int64_t>(at(ends, partition, 0) - position, 0));
    }
    return waiting;
}

std::vector<std::int32_t> Membership::to_ask(const Offsets& ends, std::int64_t now_ns) {
    if (!counting_) {
        counting_ = true;
        for (const auto& [partition, end] : ends) {
            if (const std::int64_t count = end - at(begin_, partition, 0); count > 0) {
                left_[partition] = count;
            }
        }
    }
    std::vector<std::int32_t> others;
    if (now_ns >= ask_at_ns_) {
        ask_at_ns_ = now_ns + kAskEveryNs;
        for (const auto& [partition, count] : left_) {
            if (!positions_.contains(partition)) {
                others.push_back(partition);
            }
        }
    }
    return others;
}

void Membership::learn(const Offsets& committed, const Offsets& ends) {
    for (const auto& [partition, offset] : committed) {
        const std::int64_t count = at(ends, partition, 0) - std::max(offset, at(begin_, partition, 0));
        if (count > 0) {
            left_[partition] = count;
        } else {
            left_.erase(partition);
        }
    }
}

std::uint64_t Membership::others_left() const {
    std::uint64_t waiting = 0;
    for (const auto& [partition, count] : left_) {
        waiting += positions_.contains(partition) ? 0 : static_cast<std::uint64_t>(count);
    }
    return waiting;
}

KafkaMemberReport Membership::report() {
    rebalanced_.reported = true;
    return {.rebalance_ms = static_cast<double>(rebalanced_.ns) / 1e6, .rebalances = rebalanced_.times};
}

}  // namespace hydra
