// Frames on a stream of bytes between a relay and its clients: each follows its length, 4 bytes, little
// endian. Pure.
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

// A longer frame ends its connection. (A frame that is longer than a message is rejected later.)
inline constexpr std::uint32_t kLongestFrame = 2 * kMaxMessageBytes;

using FrameLength = std::array<char, sizeof(std::uint32_t)>;

inline FrameLength frame_length(std::string_view frame) {
    return std::bit_cast<FrameLength>(static_cast<std::uint32_t>(frame.size()));
}

// Splits the bytes that have arrived into frames.
class FrameReader {
  public:
    void add(std::string_view bytes) { bytes_.append(bytes); }

    // The next whole frame.
    std::optional<std::string> take() {
        std::uint32_t length = 0;
        const std::size_t left = bytes_.size() - taken_;
        if (left >= sizeof length) {
            std::memcpy(&length, bytes_.data() + taken_, sizeof length);
            broken_ = broken_ || length > kLongestFrame;
        }
        if (left < sizeof length || broken_ || left - sizeof length < length) {
            bytes_.erase(0, taken_);
            taken_ = 0;
            return std::nullopt;
        }
        std::string frame = bytes_.substr(taken_ + sizeof length, length);
        taken_ += sizeof length + length;
        return frame;
    }

    // Whether a frame was too long: nothing more may be read.
    [[nodiscard]] bool broken() const { return broken_; }

  private:
    std::string bytes_;
    std::size_t taken_ = 0;
    bool broken_ = false;
};

}  // namespace hydra
