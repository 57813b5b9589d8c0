// The control channel's messages as bytes: one frame is one JSON object, and of a batch the first of two.
// Pure. docs/control-protocol.md is the specification, tests/golden holds the bytes.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"

namespace hydra {

inline constexpr int kVersion = 2;

// A frame that is no message of this protocol; it is ignored and changes nothing.
struct ProtocolError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

FromController decode(std::string_view frame);

// What a client says, as its relay reads it.
FromClient decode_from_client(std::string_view frame);

std::string encode(const FromClient& message, std::uint64_t seq);

// What a relay says to its clients.
std::string encode(const FromController& message);

// A command's frame without its ids, as its writer wrote the rest; and with these.
std::string without_ids(std::string_view frame);
std::string with_ids(std::string_view frame_without, const Ids& ids);

}  // namespace hydra
