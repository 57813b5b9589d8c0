#include "common/payload.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace hydra {

void PayloadBlock::set(Payload payload, std::uint64_t message_size, std::uint64_t at_least,
                       std::uint64_t random_bytes) {
    if (payload == payload_ && message_size == message_size_ && at_least == at_least_) {
        return;
    }
    payload_ = payload;
    message_size_ = message_size;
    at_least_ = at_least;
    const std::uint64_t wished = payload == Payload::random ? random_bytes / message_size : 0;
    messages_ = std::max(at_least, wished);
    place_ = 0;
    bytes_ = std::vector<char>(messages_ * message_size);
    if (payload == Payload::random) {
        std::mt19937_64 random(std::random_device{}());
        for (std::uint64_t at = 0; at < bytes_.size(); at += sizeof(std::uint64_t)) {
            const std::uint64_t number = random();
            std::memcpy(bytes_.data() + at, &number, std::min(sizeof number, bytes_.size() - at));
        }
    }
}

char* PayloadBlock::next(std::uint64_t count) {
    if (place_ + count > messages_) {
        place_ = 0;
    }
    char* room = bytes_.data() + place_ * message_size_;
    place_ += count;
    return room;
}

}  // namespace hydra
