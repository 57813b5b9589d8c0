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

// `from` holds at least a header. Each field is read by itself: GCC copies 24 bytes to the stack in two
// stores, and a read across both of them waits until they have reached the cache, which doubles the time of a
// message's account.
inline Header read_header(const void* from) {
    const auto* bytes = static_cast<const std::byte*>(from);
    Header header;
    std::memcpy(&header.epoch, bytes + offsetof(Header, epoch), sizeof header.epoch);
    std::memcpy(&header.publisher, bytes + offsetof(Header, publisher), sizeof header.publisher);
    std::memcpy(&header.sequence, bytes + offsetof(Header, sequence), sizeof header.sequence);
    std::memcpy(&header.time_ns, bytes + offsetof(Header, time_ns), sizeof header.time_ns);
    return header;
}

}  // namespace hydra
