// A set of sequences as a bitmap in base64: what a member of a group says that it received. Pure.
// (As hydra/wire/compact_encoding.py.)
//
// Bit i stands for the sequence i, beginning with the least significant bit of the first byte; zero bytes at
// the end are cut.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/sequence_set.h"

namespace hydra {

// Base64 in all bitmaps of one report together: half of a message. Sequences of one publisher that fit in.
inline constexpr std::size_t kMaxBitmapCharacters = kMaxMessageBytes / 2;
inline constexpr std::uint64_t kMaxBitmapSequences = kMaxBitmapCharacters / 4 * 3 * 8;

// Nothing where the set reaches beyond kMaxBitmapSequences.
[[nodiscard]] std::optional<std::string> bitmap(const SequenceSet& received);

}  // namespace hydra
