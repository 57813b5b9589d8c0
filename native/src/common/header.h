// The 24 bytes at the start of every data message: epoch u32, publisher u32, sequence u64, time u64 (ns),
// little endian. A probe has epoch 0 and carries in its sequence the epoch that its publisher is configured
// for; an end marker has epoch 0 and carries 2⁶³ | the epoch that has ended.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hydra {

static_assert(std::endian::native == std::endian::little, "headers are copied as they lie in memory");

struct Header {
    std::uint32_t epoch;
    std::uint32_t publisher;
    std::uint64_t sequence;
    std::uint64_t time_ns;
    bool operator==(const Header&) const = default;
};

// Sequences of data and of probes are below this.
inline constexpr std::uint64_t kSequenceLimit = std::uint64_t{1} << 63;
inline constexpr std::size_t kHeaderBytes = 24;
static_assert(sizeof(Header) == kHeaderBytes);

// `to` needs space for a header.
inline void write_header(void* to, const Header& header) {
    std::memcpy(to, &header, kHeaderBytes);
}

// `from` holds at least a header.
inline Header read_header(const void* from) {
    Header header;
    std::memcpy(&header, from, kHeaderBytes);
    return header;
}

}  // namespace hydra
