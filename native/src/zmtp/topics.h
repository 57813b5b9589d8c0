// What a subscriber asks its publishers for.
#pragma once

#include <cstdint>
#include <string>

#include "common/traffic.h"
#include "zmq/topic_prefix.h"
#include "zmtp/protocol.h"

namespace hydra {

// `frames` are its subscriptions; `prefix_bytes` is the length of the topic in front of each message's
// header.
struct ZmtpTopics {
    std::string frames = subscription("");
    std::uint8_t prefix_bytes = 0;
    bool operator==(const ZmtpTopics&) const = default;
};

inline ZmtpTopics zmtp_topics(const TopicFilter& filter) {
    ZmtpTopics it{.prefix_bytes = filter.numbered() ? std::uint8_t{kTopicPrefixBytes} : std::uint8_t{0}};
    if (!filter.topics.empty()) {
        it.frames.clear();
    }
    for (const std::uint32_t topic : filter.topics) {
        it.frames += subscription(topic_prefix(topic));
    }
    return it;
}

}  // namespace hydra
