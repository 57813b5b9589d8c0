// The messages of the control channel as bytes: a frame is one JSON object; a batch has a second, binary
// frame. Pure. docs/control-protocol.md is the specification, tests/golden holds the bytes.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"

namespace hydra {

// A frame that is no message of this protocol; it is ignored.
struct ProtocolError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

FromController decode(std::string_view frame);

// A client's message, decoded by its relay.
FromClient decode_from_client(std::string_view frame);

std::string encode(const FromClient& message, std::uint64_t seq);

// A relay's message to its clients.
std::string encode(const FromController& message);

// A command's frame without its ids, otherwise unchanged; and such a frame with these ids.
std::string without_ids(std::string_view frame);
std::string with_ids(std::string_view frame_without, const Ids& ids);

}  // namespace hydra
