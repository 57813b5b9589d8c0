// A member's state of its part of a topic; librdkafka manages the consumer group itself.
//
// The offset at which a partition is read is exact although nothing is written before a step: offsets only
// rise, so an offset committed in an earlier step is at or before this step's beginning, and one committed in
// this step is after it. The later of the two is the group's position, regardless of which member had the
// partition before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kafka/settings.h"

namespace hydra {

// All times are on CLOCK_MONOTONIC.
class Membership {
  public:
    explicit Membership(std::int64_t now_ns) : unassigned_ns_(now_ns) {}

    // Begins a step at these offsets, of all partitions. Returns the partitions of this member that have to
    // be moved.
    Offsets step(const Offsets& begin, std::int64_t now_ns);

    // Another member has the partitions, or none, until the group assigns them again.
    void lost(std::int64_t now_ns);

    // The group has assigned these partitions, with its committed offsets. Returns the offsets from which to
    // read.
    const Offsets& given(std::span<const std::int32_t> partitions, const Offsets& committed,
                         std::int64_t now_ns);

    [[nodiscard]] bool assigned() const { return assigned_; }
    [[nodiscard]] bool idle() const { return assigned_ && positions_.empty(); }

    // Messages before this offset have been read.
    void read_until(std::int32_t partition, std::int64_t offset);

    // Offsets to commit: every few seconds, or `now`; they count as committed from here on.
    [[nodiscard]] Offsets uncommitted(bool now, std::int64_t now_ns);
    // A commit failed: a later one, not at once, has to commit everything again.
    void refused(std::int64_t now_ns);

    // The number of messages before these offsets that wait for this member.
    [[nodiscard]] std::uint64_t own_left(const Offsets& ends) const;
    // The partitions of other members whose committed offsets have to be requested: until the others have
    // reached the ends, this member stays and can take over from one that dies in the drain.
    std::vector<std::int32_t> to_ask(const Offsets& ends, std::int64_t now_ns);
    void learn(const Offsets& committed, const Offsets& ends);
    [[nodiscard]] std::uint64_t others_left() const;

    // Rebalances since the last report.
    [[nodiscard]] KafkaMemberReport report();

    // The rebalances of a member, which the member that follows it after a reconnection adds to its own.
    struct Rebalances {
        std::int64_t ns = 0;
        std::uint64_t times = 0;
        bool reported = false;
    };
    [[nodiscard]] Rebalances rebalances() const { return rebalanced_; }
    void follow(const Rebalances& before) { rebalanced_ = before; }

  private:
    bool assigned_ = false;
    Offsets positions_;  // of this member's partitions
    Offsets begin_;
    Offsets committed_;
    Offsets left_;  // messages of each partition after the group's committed offset
    bool counting_ = false;
    std::int64_t commit_at_ns_ = 0;
    std::int64_t again_at_ns_ = 0;
    std::int64_t ask_at_ns_ = 0;
    std::int64_t unassigned_ns_;
    Rebalances rebalanced_;
};

}  // namespace hydra
