// Where each message goes, its key and its size: functions of the seed, the publisher and the sequence, so a
// receiver knows them without a byte in the message. Pure. docs/control-protocol.md, section 5, is the
// specification. (Python: hydra/wire/traffic.py.)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/messages/from_controller.h"
#include "common/split_mix.h"

namespace hydra {

// Why this traffic is invalid, or "".
std::string no_traffic(const Traffic& traffic);

// The number of topics of a step.
std::uint32_t topics_of(const Configure& command);

// The topics of a subscriber, ascending.
std::vector<std::uint32_t> topics_of(const Traffic& traffic, Id client);

// Whether every subscriber has every topic.
bool has_all(const Traffic& traffic);

// Probes and end markers go to this many topics, from 0 on: as few as contain a topic of every subscriber,
// whatever its topics are.
std::uint32_t signalled_topics(const Configure& command);

// The names of a step's topics by number: only the base if there is one topic.
std::vector<std::string> topic_names(const std::string& base, char separator, std::uint32_t topics);

// The topics to which a subscriber subscribes. Neither: the step has one topic, whose name has no number.
struct TopicFilter {
    std::vector<std::uint32_t> topics;  // ascending
    bool wildcard = false;              // all, by one pattern
    bool operator==(const TopicFilter&) const = default;

    [[nodiscard]] bool numbered() const { return wildcard || !topics.empty(); }
};

TopicFilter topic_filter(const Configure& command, Id client);

// The number of topics that form the tenth with most messages, from 0 on.
std::uint32_t hot_topics(std::uint32_t topics);

// The numbers of one purpose of a publisher: number n belongs to message n.
class Draws {
  public:
    enum Purpose : std::uint64_t { topic = 1, key, size_class, size, topics_of_client };

    // Of the topics of a client, `publisher` is its id.
    Draws(std::uint64_t seed, Id publisher, Purpose purpose)
        : base_(split_mixed(split_mixed(seed + purpose * 0xD1B54A32D192ED03U) +
                            publisher * 0x8CB92BA72F3D8DD7U)) {}

    [[nodiscard]] std::uint64_t at(std::uint64_t n) const { return split_mixed(base_ + n * kSplitMixStep); }

    // A whole number below `count`, from the high half of a draw.
    static std::uint64_t below(std::uint64_t draw, std::uint64_t count) { return (draw >> 32) * count >> 32; }

  private:
    std::uint64_t base_;
};

// One of `count` indices for each message; the table outlives it.
class Choice {
  public:
    Choice(Draws draws, std::uint32_t count, const std::vector<AliasSlot>& table)
        : draws_(draws), count_(count), table_(table.empty() ? nullptr : table.data()) {}

    [[nodiscard]] std::uint32_t at(std::uint64_t n) const {
        const std::uint64_t draw = draws_.at(n);
        const auto slot = static_cast<std::uint32_t>(Draws::below(draw, count_));
        if (table_ == nullptr) {
            return slot;
        }
        const AliasSlot& it = table_[slot];
        return static_cast<std::uint32_t>(draw) < it.threshold ? slot : it.alias;
    }

  private:
    Draws draws_;
    std::uint32_t count_;
    const AliasSlot* table_;
};

// The traffic of one publisher.
class PublisherTraffic {
  public:
    PublisherTraffic(std::shared_ptr<const Traffic> traffic, Id publisher);

    [[nodiscard]] std::uint32_t topic(std::uint64_t n) const { return topics_.at(n); }
    [[nodiscard]] std::uint32_t key(std::uint64_t n) const { return keys_.at(n); }
    [[nodiscard]] bool has_sizes() const { return !traffic_->sizes.empty(); }
    // Only if it has sizes.
    [[nodiscard]] std::uint64_t size(std::uint64_t n) const {
        const SizeRange& range = traffic_->sizes[size_classes_.at(n)];
        return range.least + Draws::below(sizes_.at(n), range.most - range.least + 1);
    }
    [[nodiscard]] const Choice& topics() const { return topics_; }

  private:
    std::shared_ptr<const Traffic> traffic_;
    Choice topics_;
    Choice keys_;
    Choice size_classes_;
    Draws sizes_;
};

}  // namespace hydra
