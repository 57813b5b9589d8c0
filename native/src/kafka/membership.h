// What a member of a consumer group knows of its part of a topic; the group itself is librdkafka's business.
//
// Where a partition is read from is exact without anything being written before: offsets only rise, so what
// the group committed in an earlier step lies at or before this step's beginning, and what it committed in
// this one behind it. The later of the two is where the group stands, whoever had the partition before.
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

    // A step begins at these offsets, of all partitions. Which of this member's have to be moved there.
    Offsets step(const Offsets& begin, std::int64_t now_ns);

    // The partitions are another's, or nobody's, until the group tells anew.
    void lost(std::int64_t now_ns);

    // The group tells which partitions are this member's, and what it has committed of them. The offsets to
    // read them from.
    const Offsets& given(std::span<const std::int32_t> partitions, const Offsets& committed,
                         std::int64_t now_ns);

    [[nodiscard]] bool assigned() const { return assigned_; }
    [[nodiscard]] bool idle() const { return assigned_ && positions_.empty(); }

    // Messages before this offset have been read.
    void read_until(std::int32_t partition, std::int64_t offset);

    // Offsets to be committed: every few seconds, or `now`; they count as committed from here on.
    [[nodiscard]] Offsets uncommitted(bool now, std::int64_t now_ns);
    // A commit failed: a later one, not at once, has to tell everything again.
    void refused(std::int64_t now_ns);

    // How many messages before these offsets wait for this member.
    [[nodiscard]] std::uint64_t own_left(const Offsets& ends) const;
    // The partitions of others of which the group is to be asked what it has committed: until they end, this
    // member is still there to take over from one that dies in the drain.
    std::vector<std::int32_t> to_ask(const Offsets& ends, std::int64_t now_ns);
    void learn(const Offsets& committed, const Offsets& ends);
    [[nodiscard]] std::uint64_t others_left() const;

    [[nodiscard]] KafkaMemberReport report() const;

  private:
    bool assigned_ = false;
    Offsets positions_;  // of this member's partitions
    Offsets begin_;
    Offsets committed_;
    Offsets left_;  // messages of each partition that the group is not known to have read
    bool counting_ = false;
    std::int64_t commit_at_ns_ = 0;
    std::int64_t again_at_ns_ = 0;
    std::int64_t ask_at_ns_ = 0;
    std::int64_t unassigned_ns_;
    std::int64_t rebalance_ns_ = 0;
    std::uint64_t rebalances_ = 0;
};

}  // namespace hydra
