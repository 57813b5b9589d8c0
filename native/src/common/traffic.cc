#include "common/traffic.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace hydra {
namespace {

bool fits(const std::vector<AliasSlot>& table, std::size_t count) {
    return table.empty() ||
           (table.size() == count &&
            std::ranges::all_of(table, [count](const AliasSlot& it) { return it.alias < count; }));
}

}  // namespace

std::string no_traffic(const Traffic& traffic) {
    if (!fits(traffic.topic_table, traffic.topics) || !fits(traffic.key_table, traffic.keys) ||
        !fits(traffic.size_table, traffic.sizes.size())) {
        return "a table of configure.traffic does not have one slot for each choice";
    }
    if (traffic.topics_per_client > traffic.topics) {
        return "configure.traffic has more topics for each client than there are";
    }
    const bool rising =
        std::ranges::all_of(traffic.sizes, [](const SizeRange& it) { return it.least <= it.most; });
    return rising ? "" : "configure.traffic has sizes whose least value is above the most";
}

std::uint32_t topics_of(const Configure& command) {
    return command.traffic ? command.traffic->topics : 1;
}

bool has_all(const Traffic& traffic) {
    return traffic.wildcard || traffic.topics_per_client == 0 || traffic.topics_per_client == traffic.topics;
}

// The first part of a Fisher-Yates shuffle; `moved` has the places that it has changed.
std::vector<std::uint32_t> topics_of(const Traffic& traffic, Id client) {
    std::vector<std::uint32_t> chosen;
    if (has_all(traffic)) {
        chosen.resize(traffic.topics);
        std::iota(chosen.begin(), chosen.end(), 0U);
        return chosen;
    }
    const Draws draws(traffic.seed, client, Draws::topics_of_client);
    std::unordered_map<std::uint32_t, std::uint32_t> moved;
    const auto at = [&moved](std::uint32_t place) {
        const auto found = moved.find(place);
        return found == moved.end() ? place : found->second;
    };
    for (std::uint32_t i = 0; i < traffic.topics_per_client; ++i) {
        const auto j = static_cast<std::uint32_t>(i + Draws::below(draws.at(i), traffic.topics - i));
        chosen.push_back(at(j));
        moved[j] = at(i);
    }
    std::ranges::sort(chosen);
    return chosen;
}

// Of any k of T topics, one is among the first T − k + 1.
std::uint32_t signalled_topics(const Configure& command) {
    return !command.traffic || has_all(*command.traffic)
               ? 1
               : command.traffic->topics - command.traffic->topics_per_client + 1;
}

std::vector<std::string> topic_names(const std::string& base, char separator, std::uint32_t topics) {
    if (topics == 1) {
        return {base};
    }
    std::vector<std::string> names;
    for (std::uint32_t topic = 0; topic < topics; ++topic) {
        names.push_back(base + separator + std::to_string(topic));
    }
    return names;
}

TopicFilter topic_filter(const Configure& command, Id client) {
    if (topics_of(command) == 1) {
        return {};
    }
    if (command.traffic->wildcard) {
        return {.wildcard = true};
    }
    return {.topics = topics_of(*command.traffic, client)};
}

std::uint32_t hot_topics(std::uint32_t topics) {
    return (topics + 9) / 10;
}

PublisherTraffic::PublisherTraffic(std::shared_ptr<const Traffic> traffic, Id publisher)
    : traffic_(std::move(traffic)),
      topics_(Draws(traffic_->seed, publisher, Draws::topic), traffic_->topics, traffic_->topic_table),
      keys_(Draws(traffic_->seed, publisher, Draws::key), traffic_->keys, traffic_->key_table),
      size_classes_(Draws(traffic_->seed, publisher, Draws::size_class),
                    static_cast<std::uint32_t>(traffic_->sizes.size()), traffic_->size_table),
      sizes_(traffic_->seed, publisher, Draws::size) {}

}  // namespace hydra
