// The set of sequences received from one publisher in one epoch: exact, whatever the order of arrival. Pure.
//
// Every sequence below `next` was received, except for the gaps below `base` (sorted ranges) and the zeros of
// a ring of bits for base … next − 1. A stream without loss keeps base = next and costs one comparison for
// each run. Gaps are first zeros in the ring, where filling one costs a bit; they become ranges only when the
// ring moves on. If messages often arrive later than that (many Kafka partitions), the ring grows. While no
// message has arrived late, a long gap becomes a range at once: it comes from a full queue, and needs no
// ring.
#pragma once

#include <cstdint>
#include <vector>

#include "common/messages/parts.h"

namespace hydra {

class SequenceSet {
  public:
    // The first and the largest length of the ring in bits: powers of two, at least 128.
    explicit SequenceSet(std::uint64_t window = std::uint64_t{1} << 13,
                         std::uint64_t largest = std::uint64_t{1} << 24)
        : window_(window), largest_(largest) {}

    // Adds an ascending run of messages first … last.
    void add(std::uint64_t first, std::uint64_t last) {
        if (first == next_ && base_ == next_) {
            base_ = next_ = last + 1;
            count_ += last - first + 1;
            return;
        }
        add_with_holes(first, last);
    }

    // One more than the highest sequence received.
    [[nodiscard]] std::uint64_t next() const { return next_; }
    // Distinct sequences received.
    [[nodiscard]] std::uint64_t count() const { return count_; }
    [[nodiscard]] std::uint64_t duplicates() const { return duplicates_; }
    // First arrivals after a later sequence.
    [[nodiscard]] std::uint64_t reordered() const { return reordered_; }

    // Sequences below next() that were not received: sorted, disjoint, not adjacent.
    [[nodiscard]] std::vector<Range> gaps() const;

  private:
    void add_with_holes(std::uint64_t first, std::uint64_t last);
    std::uint64_t fill_gaps(std::uint64_t first, std::uint64_t last);
    std::uint64_t set_bits(std::uint64_t first, std::uint64_t last);
    void make_room(std::uint64_t last);
    void retire(std::uint64_t until);
    void close_up();
    void grow();
    [[nodiscard]] std::uint64_t& word(std::uint64_t sequence) {
        return bits_[sequence / 64 & (bits_.size() - 1)];
    }

    std::uint64_t next_ = 0;
    std::uint64_t base_ = 0;
    std::uint64_t count_ = 0;
    std::uint64_t duplicates_ = 0;
    std::uint64_t reordered_ = 0;
    std::uint64_t window_;
    std::uint64_t largest_;
    std::uint64_t too_late_ = 0;       // fillings that missed the ring
    std::vector<Range> gaps_;          // below base_
    std::vector<std::uint64_t> bits_;  // zeros outside base_ … next_ − 1; empty until there is a gap
};

}  // namespace hydra
