// The bytes in front of a message's header if a step has several topics: the topic's number, big endian.
// Subscriptions are prefixes of messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hydra {

inline constexpr std::size_t kTopicPrefixBytes = 4;

inline std::string topic_prefix(std::uint32_t topic) {
    std::string bytes(kTopicPrefixBytes, '\0');
    for (std::size_t i = kTopicPrefixBytes; i-- > 0; topic >>= 8) {
        bytes[i] = static_cast<char>(topic & 0xFF);
    }
    return bytes;
}

}  // namespace hydra
