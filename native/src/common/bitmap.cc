#include "common/bitmap.h"

#include <algorithm>
#include <vector>

namespace hydra {
namespace {

constexpr const char* kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// RFC 4648, with padding.
std::string base64(const std::vector<std::uint8_t>& bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t there = std::min<std::size_t>(bytes.size() - i, 3);
        std::uint32_t three = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            three = three << 8 | (k < there ? bytes[i + k] : 0U);
        }
        for (std::size_t k = 0; k < 4; ++k) {
            text += k <= there ? kAlphabet[three >> (18 - 6 * k) & 63] : '=';
        }
    }
    return text;
}

}  // namespace

std::optional<std::string> bitmap(const SequenceSet& received) {
    const std::uint64_t size = received.next();
    if (size > kMaxBitmapSequences) {
        return std::nullopt;
    }
    std::vector<std::uint8_t> bytes((size + 7) / 8, 0xFF);
    const auto clear = [&bytes](std::uint64_t first, std::uint64_t last) {
        for (std::uint64_t n = first; n <= last; ++n) {
            bytes[n / 8] &= static_cast<std::uint8_t>(~(1U << n % 8));
        }
    };
    for (const Range& gap : received.gaps()) {
        clear(gap.first, gap.last);
    }
    if (size % 8 != 0) {
        clear(size, size / 8 * 8 + 7);
    }
    return base64(bytes);
}

}  // namespace hydra
