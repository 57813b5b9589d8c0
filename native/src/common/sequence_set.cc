#include "common/sequence_set.h"

#include <algorithm>
#include <bit>

namespace hydra {
namespace {

constexpr std::uint64_t kAllOnes = ~std::uint64_t{0};
constexpr std::uint64_t kLongHole = 64;  // from one full queue, not from interleaved messages
constexpr std::uint64_t kPatience = 64;  // late fillings after which the ring is doubled

// Ones for those of first … last that are in the same word of 64 bits as first.
std::uint64_t mask_from(std::uint64_t first, std::uint64_t last) {
    const std::uint64_t low = first % 64;
    const std::uint64_t length = std::min(last - first + 1, 64 - low);
    return (length == 64 ? kAllOnes : (std::uint64_t{1} << length) - 1) << low;
}

void append(std::vector<Range>& gaps, std::uint64_t first, std::uint64_t last) {
    if (!gaps.empty() && gaps.back().last + 1 == first) {
        gaps.back().last = last;
    } else {
        gaps.push_back({first, last});
    }
}

}  // namespace

void SequenceSet::add_with_holes(std::uint64_t first, std::uint64_t last) {
    if (base_ == next_ && first >= next_ + kLongHole && reordered_ == 0) {
        retire(first);
        base_ = next_ = last + 1;
        count_ += last - first + 1;
        return;
    }
    if (first >= next_ && !bits_.empty() && last - base_ < bits_.size() * 64 - 64) {
        // In order after a gap that stays, with space in the ring: nothing to count or to close.
        set_bits(first, last);
        count_ += last - first + 1;
        next_ = last + 1;
        return;
    }
    if (first < base_) {
        const std::uint64_t behind = std::min(last, base_ - 1);
        const std::uint64_t filled = fill_gaps(first, behind);
        count_ += filled;
        reordered_ += filled;
        duplicates_ += behind - first + 1 - filled;
        if (last < base_) {
            return;
        }
        first = base_;
    }
    if (last - first >= window_ / 2) {
        // Adds the run in pieces, so each fits above the base.
        const std::uint64_t middle = first + window_ / 2 - 1;
        add(first, middle);
        add(middle + 1, last);
        return;
    }
    make_room(last);
    const std::uint64_t fresh = set_bits(first, last);
    const std::uint64_t behind = first < next_ ? std::min(last, next_ - 1) - first + 1 : 0;
    const std::uint64_t ahead = last - first + 1 - behind;
    count_ += fresh;
    reordered_ += fresh - ahead;
    duplicates_ += behind - (fresh - ahead);
    next_ = std::max(next_, last + 1);
    close_up();
}

// Removes first … last (all below base_) from the gaps; returns how many of them were in one.
std::uint64_t SequenceSet::fill_gaps(std::uint64_t first, std::uint64_t last) {
    const auto begin = std::ranges::lower_bound(gaps_, first, {}, &Range::last);
    auto end = begin;
    std::uint64_t filled = 0;
    std::vector<Range> left;
    for (; end != gaps_.end() && end->first <= last; ++end) {
        filled += std::min(end->last, last) - std::max(end->first, first) + 1;
        if (end->first < first) {
            left.push_back({end->first, first - 1});
        }
        if (end->last > last) {
            left.push_back({last + 1, end->last});
        }
    }
    if (filled == 0) {
        return 0;
    }
    const auto reused = std::min<std::ptrdiff_t>(end - begin, static_cast<std::ptrdiff_t>(left.size()));
    const auto rest = std::copy_n(left.begin(), reused, begin);
    if (rest < end) {
        gaps_.erase(rest, end);
    } else {
        gaps_.insert(rest, left.begin() + reused, left.end());
    }
    if (++too_late_ == kPatience) {
        too_late_ = 0;
        grow();
    }
    return filled;
}

// Sets first … last; returns how many of them were not set yet.
std::uint64_t SequenceSet::set_bits(std::uint64_t first, std::uint64_t last) {
    std::uint64_t fresh = 0;
    while (true) {
        const std::uint64_t mask = mask_from(first, last);
        std::uint64_t& bits = word(first);
        fresh += static_cast<std::uint64_t>(std::popcount(mask & ~bits));
        bits |= mask;
        first = first / 64 * 64 + 64;
        if (first > last) {
            return fresh;
        }
    }
}

// Moves the base so that `last` is in the ring. One word stays free: the words of base_ and of `last` must be
// different.
void SequenceSet::make_room(std::uint64_t last) {
    if (bits_.empty()) {
        bits_.assign(window_ / 64, 0);
    }
    const std::uint64_t length = bits_.size() * 64 - 64;
    if (last >= length && last - length >= base_) {
        retire(last - length + 1);
    }
}

// Turns the zeros of base_ … until − 1 into gaps, also above next_.
void SequenceSet::retire(std::uint64_t until) {
    const std::uint64_t known = std::min(until, next_);
    while (base_ < known) {
        const std::uint64_t mask = mask_from(base_, known - 1);
        std::uint64_t& bits = word(base_);
        std::uint64_t holes = mask & ~bits;
        bits &= ~mask;
        const std::uint64_t origin = base_ / 64 * 64;
        while (holes != 0) {
            const int low = std::countr_zero(holes);
            const int length = std::countr_one(holes >> low);
            append(gaps_, origin + static_cast<std::uint64_t>(low),
                   origin + static_cast<std::uint64_t>(low + length) - 1);
            holes &= low + length == 64 ? 0 : kAllOnes << (low + length);
        }
        base_ = std::min(origin + 64, known);
    }
    if (base_ < until) {
        append(gaps_, base_, until - 1);
        base_ = next_ = until;
    }
}

// Moves the base over sequences that were received without a gap.
void SequenceSet::close_up() {
    while (base_ < next_) {
        const std::uint64_t low = base_ % 64;
        std::uint64_t& bits = word(base_);
        const auto run = static_cast<std::uint64_t>(std::countr_one(bits >> low));
        if (run == 0) {
            return;
        }
        const std::uint64_t end = std::min({base_ + run, base_ - low + 64, next_});
        bits &= ~mask_from(base_, end - 1);
        base_ = end;
    }
}

void SequenceSet::grow() {
    if (window_ >= largest_ || bits_.empty()) {
        return;
    }
    std::vector<std::uint64_t> longer(bits_.size() * 2, 0);
    for (std::uint64_t sequence = base_; sequence < next_; sequence = sequence / 64 * 64 + 64) {
        longer[sequence / 64 & (longer.size() - 1)] = word(sequence);
    }
    bits_ = std::move(longer);
    window_ *= 2;
}

std::vector<Range> SequenceSet::gaps() const {
    SequenceSet twin = *this;
    twin.retire(twin.next_);
    return std::move(twin.gaps_);
}

}  // namespace hydra
