// Messages on a stream of bytes between a relay and its clients: each frame follows its length, 4 bytes,
// little endian, whose highest bit shows that the message has another frame. Pure.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "common/protocol.h"

namespace hydra {

static_assert(std::endian::native == std::endian::little, "lengths are copied as they lie in memory");

// A longer frame ends its connection. (A first frame that is longer than a message is rejected later.)
inline constexpr std::uint32_t kLongestFrame = kMaxPayloadBytes;
// Set in the length of a frame whose message has another frame.
inline constexpr std::uint32_t kMoreFollows = 0x8000'0000;

using FrameLength = std::array<char, sizeof(std::uint32_t)>;

inline FrameLength frame_length(std::string_view frame, bool more = false) {
    return std::bit_cast<FrameLength>(static_cast<std::uint32_t>(frame.size()) | (more ? kMoreFollows : 0));
}

struct Frames {
    std::string first;
    std::optional<std::string> second;
};

// Splits the bytes that have arrived into messages.
class FrameReader {
  public:
    void add(std::string_view bytes) { bytes_.append(bytes); }

    // The next whole message, of one or two frames.
    std::optional<Frames> take() {
        const auto first = span_at(taken_);
        const auto second = first && first->more ? span_at(first->end) : std::nullopt;
        broken_ = broken_ || (second && second->more);
        if (!first || (first->more && !second) || broken_) {
            bytes_.erase(0, taken_);
            taken_ = 0;
            if (bytes_.empty() && bytes_.capacity() > kMostKept) {
                bytes_.shrink_to_fit();  // after the reports of many clients
            }
            return std::nullopt;
        }
        Frames frames{.first = text(*first), .second = {}};
        if (second) {
            frames.second = text(*second);
        }
        taken_ = second ? second->end : first->end;
        return frames;
    }

    // Whether a frame was too long: nothing more may be read.
    [[nodiscard]] bool broken() const { return broken_; }

  private:
    static constexpr std::size_t kMostKept = 65536;

    struct Span {
        std::size_t begin;
        std::size_t end;
        bool more;
    };

    // The frame whose length stands here; none: it is not whole.
    std::optional<Span> span_at(std::size_t at) {
        std::uint32_t length = 0;
        const std::size_t left = bytes_.size() - at;
        if (left < sizeof length) {
            return std::nullopt;
        }
        std::memcpy(&length, bytes_.data() + at, sizeof length);
        const bool more = (length & kMoreFollows) != 0;
        length &= ~kMoreFollows;
        broken_ = broken_ || length > kLongestFrame;
        if (broken_ || left - sizeof length < length) {
            return std::nullopt;
        }
        return Span{at + sizeof length, at + sizeof length + length, more};
    }

    [[nodiscard]] std::string text(const Span& at) const {
        return bytes_.substr(at.begin, at.end - at.begin);
    }

    std::string bytes_;
    std::size_t taken_ = 0;
    bool broken_ = false;
};

}  // namespace hydra
