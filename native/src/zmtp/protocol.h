// What a subscriber sends and receives before the first message, by ZMTP 3.0
// (https://rfc.zeromq.org/spec/23): the greeting, the mechanism NULL and the subscription. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hydra {

// The other end sent invalid or unsupported bytes; the text for the user continues a sentence after its
// address.
struct ZmtpError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline constexpr std::size_t kGreetingBytes = 64;
inline constexpr std::uint8_t kMore = 1;  // flags of a frame
inline constexpr std::uint8_t kLong = 2;
inline constexpr std::uint8_t kCommand = 4;

// The first bytes on a connection: ZMTP 3.0, NULL, as a client.
const std::array<char, kGreetingBytes>& greeting();

// Checks the first bytes of the other end's greeting, as many as have arrived; throws ZmtpError as soon as
// this client cannot use them.
void check_greeting(std::string_view begin);

// Frames that a subscriber sends.
std::string ready_command();
std::string subscription(std::string_view prefix);
std::string pong_command(std::string_view context);

// The body of a command: a name, and the bytes after it. ZmtpError: there is no name.
struct Command {
    std::string_view name;
    std::string_view data;
};
Command read_command(std::string_view body);

// Checks the socket type in READY's metadata. ZmtpError: they are invalid, or it is not a publisher's.
void check_ready(std::string_view metadata);

// The reason in an ERROR command, in printable characters.
std::string error_reason(std::string_view data);

// The context that a PONG returns, from the bytes after PING's name. ZmtpError: it is invalid.
std::string_view ping_context(std::string_view data);

}  // namespace hydra
