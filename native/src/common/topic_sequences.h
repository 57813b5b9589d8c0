// Which sequences of a publisher go to a subscriber's topics, and the rank of each among them: 0, 1, 2, …
// Pure.
//
// Sequences are computed in blocks. Of every block only the counts before it are kept, and of the last blocks
// also a bit for each sequence; an older block that is needed again is computed again. So a million sequences
// take 16 KB.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/traffic.h"

namespace hydra {

// For each topic, whether a subscriber has it, and whether it is one of the hot topics as well.
class TopicSet {
  public:
    static constexpr std::uint8_t kTaken = 1;
    static constexpr std::uint8_t kHot = 2;

    TopicSet(std::uint32_t topics, const std::vector<std::uint32_t>& own);

    // kTaken, or kTaken and kHot, or 0.
    [[nodiscard]] std::uint8_t of(std::uint32_t topic) const { return marks_[topic]; }
    // The place of one of the subscriber's topics among them.
    [[nodiscard]] std::uint32_t place(std::uint32_t topic) const { return places_[topic]; }
    // The number of the subscriber's topics.
    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    std::vector<std::uint8_t> marks_;
    std::vector<std::uint32_t> places_;
    std::size_t size_;
};

class TopicSequences {
  public:
    // Sequences beyond the last one by more than this are not the subscriber's: finding their ranks takes
    // seconds.
    static constexpr std::uint64_t kFarthest = std::uint64_t{1} << 30;

    // The table of `topics` outlives it.
    TopicSequences(const Choice& topics, std::shared_ptr<const TopicSet> set)
        : topics_(topics), set_(std::move(set)) {}

    // Whether the sequence is too far beyond the last one.
    [[nodiscard]] bool too_far(std::uint64_t n) const {
        return n / kBlock >= before_.size() + kFarthest / kBlock;
    }

    // The next three only for sequences that are not too far.
    [[nodiscard]] bool own(std::uint64_t n) { return has(block_of(n).own, n); }
    [[nodiscard]] bool hot(std::uint64_t n) { return has(block_of(n).hot, n); }
    // The number of the subscriber's sequences below n: the rank of n if it is one of them.
    [[nodiscard]] std::uint64_t own_below(std::uint64_t n);
    [[nodiscard]] std::uint64_t hot_below(std::uint64_t n);

    // The subscriber's sequence with this rank, which is below one of `own_below`.
    [[nodiscard]] std::uint64_t at_rank(std::uint64_t rank);

  private:
    static constexpr std::uint64_t kBlock = 1024;
    static constexpr std::uint64_t kKept = 8;
    static constexpr std::uint64_t kNone = UINT64_MAX;
    using Bits = std::array<std::uint64_t, kBlock / 64>;

    struct Counts {
        std::uint64_t own = 0;
        std::uint64_t hot = 0;
    };
    struct Block {
        std::uint64_t number = kNone;
        Bits own{};
        Bits hot{};
    };

    static bool has(const Bits& bits, std::uint64_t n) { return (bits[n % kBlock / 64] >> n % 64 & 1) != 0; }
    static std::uint64_t below(const Bits& bits, std::uint64_t n);

    const Block& block_of(std::uint64_t n) {
        const std::uint64_t number = n / kBlock;
        return blocks_[number % kKept].number == number ? blocks_[number % kKept] : computed(number);
    }
    const Block& computed(std::uint64_t number);
    void compute(std::uint64_t number);

    Choice topics_;
    std::shared_ptr<const TopicSet> set_;
    std::vector<Counts> before_{Counts{}};  // by block; one more than were computed
    std::array<Block, kKept> blocks_{};
};

}  // namespace hydra
