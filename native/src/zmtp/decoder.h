// Decodes the bytes of one connection, in pieces of any length, into messages: ZMTP 3.0 from the greeting on.
// Pure.
//
// A whole message is read in place. Of a message that is cut, only Hydra's header and the bytes before it are
// kept until the rest has arrived. So a connection keeps 64 bytes between two reads, and nothing is allocated
// for a message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/batch.h"
#include "common/header.h"
#include "zmtp/protocol.h"

namespace hydra {

// What the other end sends besides messages.
class ZmtpEvents {
  public:
    virtual void opened() = 0;  // the other end is ready for subscriptions
    virtual void pinged(std::string_view context) = 0;

  protected:
    ~ZmtpEvents() = default;
};

class ZmtpDecoder {
  public:
    // Each message has this many bytes of a topic in front of its header, which are not counted.
    explicit ZmtpDecoder(std::uint8_t prefix_bytes = 0) : prefix_bytes_(prefix_bytes) {}

    // The most bytes for one call of `take`, for a batch with this much space.
    static std::size_t most_bytes(std::size_t room) {
        constexpr std::size_t shortest = 2 + kHeaderBytes;
        return room == 0 ? 0 : (room - 1) * shortest + 1;
    }

    // Decodes the next piece: complete messages go into the batch. The frames of a multi-part message count
    // as messages, as in libzmq. ZmtpError: the bytes are invalid; the following ones cannot be decoded.
    void take(std::string_view piece, Batch& batch, ZmtpEvents& events);

    // Whether the other end has sent READY.
    [[nodiscard]] bool open() const { return phase_ == Phase::open; }

  private:
    enum class Phase : std::uint8_t { greeting, ready, open };

    std::string_view take_greeting(std::string_view piece);
    std::string_view take_whole_frames(std::string_view piece, Batch& batch, ZmtpEvents& events);
    std::string_view take_part(std::string_view piece, Batch& batch, ZmtpEvents& events);
    bool gather(std::string_view& piece, std::size_t bytes);
    void obey(std::string_view body, ZmtpEvents& events);
    void check_frame(std::uint8_t flags, std::uint64_t size) const;

    Phase phase_ = Phase::greeting;
    std::uint8_t prefix_bytes_;
    std::uint8_t kept_ = 0;   // bytes in cut_
    bool in_body_ = false;    // cut_ has all that is needed of its frame; left_ bytes of the body remain
    std::uint32_t size_ = 0;  // length of that body
    std::uint32_t left_ = 0;
    std::array<char, kGreetingBytes> cut_{};  // the beginning of a frame that did not end in the last piece
    std::string command_;                     // the body of a command that did not end in it
};

}  // namespace hydra
