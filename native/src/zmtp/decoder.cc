#include "zmtp/decoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/messages/parts.h"

namespace hydra {
namespace {

constexpr std::uint64_t kMostCommandBytes = 8192;
constexpr std::size_t kShortHeader = 2;
constexpr std::size_t kLongHeader = 9;

std::uint8_t flags_of(const char* frame) {
    return static_cast<std::uint8_t>(frame[0]);
}

std::size_t header_bytes(std::uint8_t flags) {
    return (flags & kLong) != 0 ? kLongHeader : kShortHeader;
}

// The length of a frame's body; the frame's header must be complete.
std::uint64_t body_bytes(const char* frame) {
    if ((flags_of(frame) & kLong) == 0) {
        return static_cast<std::uint8_t>(frame[1]);
    }
    std::uint64_t size = 0;
    std::memcpy(&size, frame + 1, sizeof size);
    return __builtin_bswap64(size);
}

}  // namespace

void ZmtpDecoder::take(std::string_view piece, Batch& batch, ZmtpEvents& events) {
    if (phase_ == Phase::greeting) {
        piece = take_greeting(piece);
    }
    while (!piece.empty()) {
        if (kept_ == 0) {
            piece = take_whole_frames(piece, batch, events);
        }
        if (!piece.empty()) {
            piece = take_part(piece, batch, events);
        }
    }
}

// Appends to the kept bytes until there are this many; returns whether there are.
bool ZmtpDecoder::gather(std::string_view& piece, std::size_t bytes) {
    if (kept_ < bytes) {
        const std::size_t count = std::min(bytes - kept_, piece.size());
        std::memcpy(cut_.data() + kept_, piece.data(), count);
        kept_ += static_cast<std::uint8_t>(count);
        piece.remove_prefix(count);
    }
    return kept_ >= bytes;
}

std::string_view ZmtpDecoder::take_greeting(std::string_view piece) {
    const bool whole = gather(piece, kGreetingBytes);
    check_greeting({cut_.data(), kept_});
    if (whole) {
        phase_ = Phase::ready;
        kept_ = 0;
    }
    return piece;
}

void ZmtpDecoder::check_frame(std::uint8_t flags, std::uint64_t size) const {
    const bool command = (flags & kCommand) != 0;
    if ((flags & ~(kMore | kLong | kCommand)) != 0 || (command && (flags & kMore) != 0)) {
        throw ZmtpError("the publisher sent a frame with the invalid ZMTP flags " + std::to_string(flags));
    }
    if (!command && phase_ != Phase::open) {
        throw ZmtpError("the publisher sent a message before the handshake ended");
    }
    if (size > (command ? kMostCommandBytes : kMaxDataMessageBytes + prefix_bytes_)) {
        throw ZmtpError("the publisher sent a frame above the maximum size: " + std::to_string(size) +
                        " bytes");
    }
}

// Returns the rest of the piece: nothing, or a frame that does not end in it.
std::string_view ZmtpDecoder::take_whole_frames(std::string_view piece, Batch& batch, ZmtpEvents& events) {
    const char* at = piece.data();
    const char* const end = at + piece.size();
    while (at != end) {
        const std::uint8_t flags = flags_of(at);
        const std::size_t header = header_bytes(flags);
        const auto received = static_cast<std::size_t>(end - at);
        if (received < header) {
            break;
        }
        const std::uint64_t size = body_bytes(at);
        if (flags != 0 || phase_ != Phase::open) {
            check_frame(flags, size);
        }
        if (received - header < size) {
            break;
        }
        if ((flags & kCommand) != 0) {
            obey({at + header, size}, events);
        } else if (size >= prefix_bytes_ + kHeaderBytes) {
            batch.add(at + header + prefix_bytes_, size - prefix_bytes_);
        }
        at += header + size;
    }
    return {at, static_cast<std::size_t>(end - at)};
}

std::string_view ZmtpDecoder::take_part(std::string_view piece, Batch& batch, ZmtpEvents& events) {
    if (!in_body_) {
        if (!gather(piece, 1) || !gather(piece, header_bytes(flags_of(cut_.data())))) {
            return piece;
        }
        const std::uint8_t flags = flags_of(cut_.data());
        const std::uint64_t size = body_bytes(cut_.data());
        check_frame(flags, size);
        const bool command = (flags & kCommand) != 0;
        const std::size_t needed = command ? 0 : std::min<std::uint64_t>(size, prefix_bytes_ + kHeaderBytes);
        if (!gather(piece, header_bytes(flags) + needed)) {
            return piece;
        }
        in_body_ = true;
        size_ = static_cast<std::uint32_t>(size);
        left_ = static_cast<std::uint32_t>(size - needed);
    }
    const std::uint8_t flags = flags_of(cut_.data());
    const std::size_t count = std::min<std::size_t>(left_, piece.size());
    if ((flags & kCommand) != 0) {
        command_.append(piece.data(), count);
    }
    left_ -= static_cast<std::uint32_t>(count);
    piece.remove_prefix(count);
    if (left_ > 0) {
        return piece;
    }
    kept_ = 0;
    in_body_ = false;
    if ((flags & kCommand) != 0) {
        const std::string body = std::exchange(command_, {});
        obey(body, events);
    } else if (size_ >= prefix_bytes_ + kHeaderBytes) {
        batch.add(cut_.data() + header_bytes(flags) + prefix_bytes_, size_ - prefix_bytes_);
    }
    return piece;
}

void ZmtpDecoder::obey(std::string_view body, ZmtpEvents& events) {
    const Command command = read_command(body);
    if (command.name == "ERROR") {
        throw ZmtpError("the publisher rejects the connection: " + error_reason(command.data));
    }
    if (phase_ == Phase::ready) {
        if (command.name != "READY") {
            throw ZmtpError("the publisher sent another command before its READY command");
        }
        check_ready(command.data);
        phase_ = Phase::open;
        events.opened();
    } else if (command.name == "PING") {
        events.pinged(ping_context(command.data));
    }
    // Other commands are not for a subscriber, and none of them is needed.
}

}  // namespace hydra
