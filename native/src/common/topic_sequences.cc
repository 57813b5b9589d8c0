#include "common/topic_sequences.h"

#include <algorithm>
#include <bit>

#include "common/traffic.h"

namespace hydra {

TopicSet::TopicSet(std::uint32_t topics, const std::vector<std::uint32_t>& own)
    : marks_(topics, 0), places_(topics, 0), size_(own.size()) {
    for (std::uint32_t place = 0; place < own.size(); ++place) {
        const std::uint32_t topic = own[place];
        marks_[topic] = topic < hot_topics(topics) ? kTaken | kHot : kTaken;
        places_[topic] = place;
    }
}

std::uint64_t TopicSequences::below(const Bits& bits, std::uint64_t n) {
    const std::uint64_t word = n % kBlock / 64;
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < word; ++i) {
        count += static_cast<std::uint64_t>(std::popcount(bits[i]));
    }
    const std::uint64_t lower = (std::uint64_t{1} << n % 64) - 1;
    return count + static_cast<std::uint64_t>(std::popcount(bits[word] & lower));
}

std::uint64_t TopicSequences::own_below(std::uint64_t n) {
    const Block& block = block_of(n);
    return before_[block.number].own + below(block.own, n);
}

std::uint64_t TopicSequences::hot_below(std::uint64_t n) {
    const Block& block = block_of(n);
    return before_[block.number].hot + below(block.hot, n);
}

std::uint64_t TopicSequences::at_rank(std::uint64_t rank) {
    const auto after = std::ranges::upper_bound(before_, rank, {}, &Counts::own);
    const auto number = static_cast<std::uint64_t>(after - before_.begin()) - 1;
    const Block& block = block_of(number * kBlock);
    std::uint64_t left = rank - before_[number].own;
    std::uint64_t word = 0;
    for (;; ++word) {
        const auto count = static_cast<std::uint64_t>(std::popcount(block.own[word]));
        if (left < count) {
            break;
        }
        left -= count;
    }
    std::uint64_t bits = block.own[word];
    for (; left > 0; --left) {
        bits &= bits - 1;
    }
    return number * kBlock + word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
}

const TopicSequences::Block& TopicSequences::computed(std::uint64_t number) {
    while (before_.size() <= number) {
        compute(before_.size() - 1);
    }
    if (blocks_[number % kKept].number != number) {
        compute(number);
    }
    return blocks_[number % kKept];
}

void TopicSequences::compute(std::uint64_t number) {
    Block& block = blocks_[number % kKept];
    block = {.number = number};
    Counts counts = before_[number];
    for (std::uint64_t i = 0; i < kBlock; ++i) {
        const std::uint8_t mark = set_->of(topics_.at(number * kBlock + i));
        const std::uint64_t own = mark & TopicSet::kTaken;
        const std::uint64_t hot = mark / TopicSet::kHot;
        block.own[i / 64] |= own << i % 64;
        block.hot[i / 64] |= hot << i % 64;
        counts.own += own;
        counts.hot += hot;
    }
    if (number + 1 == before_.size()) {
        before_.push_back(counts);
    }
}

}  // namespace hydra
