// Ranges of sequences for reports of tests.
#pragma once

#include <cstddef>
#include <vector>

#include "common/messages/parts.h"

// The sequences 0, 2, 4, …, each a range.
inline std::vector<hydra::Range> separate_ranges(std::size_t count) {
    std::vector<hydra::Range> ranges;
    for (std::size_t i = 0; i < count; ++i) {
        ranges.push_back({2 * i, 2 * i});
    }
    return ranges;
}
