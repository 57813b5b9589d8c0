// Bytes of one connection, in pieces of any length, into messages: ZMTP 3.0 from the greeting on. Pure.
//
// A whole message is taken from where it lies in the piece; of one that is cut, only the header of ours and
// what is in front of it is kept until the rest has come. So a connection keeps 64 bytes between two reads,
// and nothing is allocated for a message.
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

// What the other end says beside messages.
class ZmtpEvents {
  public:
    virtual void opened() = 0;  // it is ready, and may be sent subscriptions
    virtual void pinged(std::string_view context) = 0;

  protected:
    ~ZmtpEvents() = default;
};

class ZmtpDecoder {
  public:
    // The most bytes to give it at once, for a batch with this much room.
    static std::size_t most_bytes(std::size_t room) {
        constexpr std::size_t shortest = 2 + kHeaderBytes;
        return room == 0 ? 0 : (room - 1) * shortest + 1;
    }

    // Takes the next piece: what is complete goes into the batch. Frames of a message in several are messages
    // each, as libzmq hands them over. ZmtpError: it is none of what is expected; from then on nothing else
    // can be told from these bytes.
    void take(std::string_view piece, Batch& batch, ZmtpEvents& events);

    // Whether the other end has said that it is ready.
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
    std::uint8_t kept_ = 0;   // bytes in cut_
    bool in_body_ = false;    // cut_ has all that is needed of its frame, whose body goes on for left_
    std::uint32_t size_ = 0;  // of that body
    std::uint32_t left_ = 0;
    std::array<char, kGreetingBytes> cut_{};  // the beginning of what did not end in the last piece
    std::string command_;                     // the body of a command that did not
};

}  // namespace hydra
