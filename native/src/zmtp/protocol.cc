#include "zmtp/protocol.h"

#include <algorithm>

namespace hydra {
namespace {

constexpr std::size_t kVersionAt = 10;
constexpr std::size_t kMechanismAt = 12;
constexpr std::size_t kMechanismBytes = 20;
constexpr std::size_t kTtlBytes = 2;
constexpr std::size_t kContextBytes = 16;
constexpr std::size_t kShownCharacters = 100;

std::uint8_t byte(std::string_view text, std::size_t at) {
    return static_cast<std::uint8_t>(text[at]);
}

// The other end's bytes as one line, cut to a readable length.
std::string shown(std::string_view text) {
    std::string line(text.substr(0, kShownCharacters));
    std::ranges::replace_if(line, [](char c) { return c < ' ' || c > '~'; }, '?');
    return line;
}

std::string frame(std::uint8_t flags, const std::string& body) {
    return std::string{static_cast<char>(flags), static_cast<char>(body.size())} + body;
}

std::string command(std::string_view name, std::string_view data) {
    return frame(kCommand, static_cast<char>(name.size()) + std::string(name) + std::string(data));
}

// A length in four bytes, most significant first.
std::size_t length(std::string_view bytes) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        value = value << 8 | byte(bytes, i);
    }
    return value;
}

[[noreturn]] void refuse_metadata() {
    throw ZmtpError("the publisher sent a READY command with invalid metadata");
}

// Takes `count` bytes from the front of the metadata.
std::string_view taken(std::string_view& metadata, std::size_t count) {
    if (metadata.size() < count) {
        refuse_metadata();
    }
    const std::string_view front = metadata.substr(0, count);
    metadata.remove_prefix(count);
    return front;
}

bool same_name(std::string_view one, std::string_view lower) {
    return std::ranges::equal(one, lower,
                              [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

}  // namespace

const std::array<char, kGreetingBytes>& greeting() {
    static const std::array<char, kGreetingBytes> bytes = [] {
        std::array<char, kGreetingBytes> it{};
        it[0] = '\xFF';
        it[9] = '\x7F';
        it[kVersionAt] = 3;
        std::ranges::copy(std::string_view("NULL"), it.begin() + kMechanismAt);
        return it;
    }();
    return bytes;
}

void check_greeting(std::string_view begin) {
    if (begin.empty()) {
        return;
    }
    if (byte(begin, 0) != 0xFF || (begin.size() > 9 && (byte(begin, 9) & 1) == 0)) {
        throw ZmtpError("the publisher does not speak ZMTP 3");
    }
    if (begin.size() > kVersionAt && byte(begin, kVersionAt) < 3) {
        throw ZmtpError("the publisher speaks ZMTP " + std::to_string(byte(begin, kVersionAt) == 0 ? 1 : 2) +
                        ", but ZMTP 3 is needed");
    }
    if (begin.size() >= kMechanismAt + kMechanismBytes) {
        const std::string_view field = begin.substr(kMechanismAt, kMechanismBytes);
        const std::string_view mechanism = field.substr(0, field.find('\0'));
        if (mechanism != "NULL") {
            throw ZmtpError("the publisher asks for the mechanism " + shown(mechanism) +
                            ", but only NULL is supported");
        }
    }
}

std::string ready_command() {
    const std::string name = "Socket-Type";
    const std::string value = "SUB";
    return command("READY", static_cast<char>(name.size()) + name + std::string(3, '\0') +
                                static_cast<char>(value.size()) + value);
}

std::string subscription(std::string_view prefix) {
    return frame(0, '\1' + std::string(prefix));
}

std::string pong_command(std::string_view context) {
    return command("PONG", context);
}

Command read_command(std::string_view body) {
    if (body.empty() || byte(body, 0) == 0 || byte(body, 0) >= body.size()) {
        throw ZmtpError("the publisher sent a command without a name");
    }
    return {body.substr(1, byte(body, 0)), body.substr(1U + byte(body, 0))};
}

void check_ready(std::string_view metadata) {
    std::string_view type;
    while (!metadata.empty()) {
        const std::string_view name = taken(metadata, byte(taken(metadata, 1), 0));
        const std::string_view value = taken(metadata, length(taken(metadata, 4)));
        if (same_name(name, "socket-type")) {
            type = value;
        }
    }
    if (type != "PUB" && type != "XPUB") {
        throw ZmtpError("the publisher's socket is of the type '" + shown(type) + "', not PUB or XPUB");
    }
}

std::string error_reason(std::string_view data) {
    return data.empty() ? "" : shown(data.substr(1, byte(data, 0)));
}

std::string_view ping_context(std::string_view data) {
    if (data.size() < kTtlBytes || data.size() > kTtlBytes + kContextBytes) {
        throw ZmtpError("the publisher sent an invalid PING");
    }
    return data.substr(kTtlBytes);
}

}  // namespace hydra
