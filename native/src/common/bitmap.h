// The sequences that a member of a consumer group received, as a bitmap in base64. Pure.
// (Python: hydra/wire/compact_encoding.py.)
//
// Bit i stands for the sequence i, beginning with the least significant bit of the first byte; zero bytes at
// the end are cut.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/sequence_set.h"

namespace hydra {

// Most base64 characters in all bitmaps of one report (half of a message), and the sequences that fit into
// them.
inline constexpr std::size_t kMaxBitmapCharacters = kMaxMessageBytes / 2;
inline constexpr std::uint64_t kMaxBitmapSequences = kMaxBitmapCharacters / 4 * 3 * 8;

// Nothing if the set reaches beyond kMaxBitmapSequences.
[[nodiscard]] std::optional<std::string> bitmap(const SequenceSet& received);

}  // namespace hydra
