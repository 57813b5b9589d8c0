// JSON records of any length: events with an id, a time, a host, numbers and text. docs/control-protocol.md,
// section 5, defines them. (Python: hydra/wire/data_message.py.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/split_mix.h"

namespace hydra {

class JsonPayload {
  public:
    // `share`: random characters, of 10,000.
    JsonPayload(SplitMix64 numbers, std::uint64_t share) : numbers_(numbers), share_(share) {}

    // Fills the space with the next record, cut to its length.
    void write(std::span<char> room);

  private:
    std::uint64_t target_bytes(std::uint64_t length);

    SplitMix64 numbers_;
    std::uint64_t share_;
    std::uint64_t index_ = 0;
    std::uint64_t characters_ = 0;  // characters of all records
    std::uint64_t milliseconds_ = 0;
};

}  // namespace hydra
