#include "common/bitmap.h"

#include <algorithm>
#include <vector>

#include "common/base64.h"

namespace hydra {

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
    return to_base64(bytes);
}

}  // namespace hydra
