#include "common/base64.h"

#include <algorithm>

namespace hydra {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(const std::vector<std::uint8_t>& bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t remaining_bytes = std::min<std::size_t>(bytes.size() - i, 3);
        std::uint32_t three = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            three = three << 8 | (k < remaining_bytes ? bytes[i + k] : 0U);
        }
        for (std::size_t k = 0; k < 4; ++k) {
            text += k <= remaining_bytes ? kAlphabet[three >> (18 - 6 * k) & 63] : '=';
        }
    }
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) {
        return std::nullopt;
    }
    while (!text.empty() && text.back() == '=') {
        text.remove_suffix(1);
    }
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3 + 3);
    std::uint32_t bits = 0;
    int waiting = 0;  // bits that are no whole byte yet
    for (const char c : text) {
        const std::size_t six = kAlphabet.find(c);
        if (six == std::string_view::npos) {
            return std::nullopt;
        }
        bits = bits << 6 | static_cast<std::uint32_t>(six);
        waiting += 6;
        if (waiting >= 8) {
            waiting -= 8;
            bytes += static_cast<char>(bits >> waiting & 0xFF);
        }
    }
    return bytes;
}

}  // namespace hydra
