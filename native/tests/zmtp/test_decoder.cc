#include <doctest/doctest.h>

#include <random>

#include "wire.h"

using namespace hydra;

namespace {

// All that a publisher may send, in one string.
std::string conversation() {
    std::string all = beginning();
    for (std::uint64_t i = 0; i < 3; ++i) {
        all += message(i);
    }
    all += command("PING", std::string("\0\x0A", 2) + "context");
    all += message(3, 100) + message(4, 255) + message(5, 256) + message(6, 70'000);
    all += frame(0, "") + frame(0, "23 bytes are no header.") + frame(kMore, "part") + message(7, 24, kMore);
    all += command("PING", std::string(2, '\0'), kCommand | kLong) + command("SUBSCRIBE", "x") +
           command("NEW", "");
    all += frame(kLong, std::string(5, 'x')) + message(8);
    return all;
}

Received expected() {
    Received it;
    it.openings = 1;
    it.pings = {"context", ""};
    it.sequences = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    it.sizes = {24, 24, 24, 100, 255, 256, 70'000, 24, 24};
    return it;
}

constexpr std::uint8_t kPrefix = 4;

std::string with_topic(std::uint64_t sequence, std::size_t size) {
    const std::string body = std::string(kPrefix, 't') + message(sequence, size).substr(size > 255 ? 9 : 2);
    return frame(body.size() > 255 ? kLong : 0, body);
}

std::string refusal(const std::string& bytes) {
    for (const std::size_t piece : {bytes.size(), std::size_t{1}}) {
        ZmtpDecoder decoder;
        Received received;
        std::string error;
        try {
            for (std::size_t at = 0; at < bytes.size(); at += piece) {
                received.take(decoder, std::string_view(bytes).substr(at, piece));
            }
        } catch (const ZmtpError& e) {
            error = e.what();
        }
        if (piece == 1 || error.empty()) {
            return error;  // equal in one piece and byte by byte
        }
    }
    return "";
}

}  // namespace

TEST_CASE("a conversation in one piece") {
    ZmtpDecoder decoder;
    Received received;
    CHECK_FALSE(decoder.open());
    received.take(decoder, conversation());
    CHECK(decoder.open());
    CHECK(received == expected());
}

TEST_CASE("messages with a topic in front, cut in two at every byte") {
    const std::string all = beginning() + with_topic(0, 24) + frame(0, std::string(27, 'x')) +
                            with_topic(1, 251) + with_topic(2, 252) + with_topic(3, 300);
    for (std::size_t cut = 1; cut < all.size(); ++cut) {
        ZmtpDecoder decoder(kPrefix);
        Received received;
        received.take(decoder, std::string_view(all).substr(0, cut));
        received.take(decoder, std::string_view(all).substr(cut));
        CAPTURE(cut);
        REQUIRE(received.sequences == std::vector<std::uint64_t>{0, 1, 2, 3});
        REQUIRE(received.sizes == std::vector<std::uint32_t>{24, 251, 252, 300});
    }
}

TEST_CASE("a conversation cut in two at every byte") {
    const std::string all = conversation();
    const Received whole = expected();
    const std::size_t interesting = all.size() - 69'000;  // the long body has nothing to be cut in
    for (std::size_t cut = 1; cut < all.size(); ++cut) {
        if (cut > 1000 && cut < interesting) {
            cut = interesting;
        }
        ZmtpDecoder decoder;
        Received received;
        received.take(decoder, std::string_view(all).substr(0, cut));
        received.take(decoder, std::string_view(all).substr(cut));
        CAPTURE(cut);
        REQUIRE(received == whole);
    }
}

TEST_CASE("a conversation in pieces of one length, and of any") {
    const std::string all = conversation();
    std::mt19937 random(1);
    for (std::size_t length = 0; length < 80; ++length) {
        ZmtpDecoder decoder;
        Received received;
        for (std::size_t at = 0; at < all.size();) {
            const std::size_t piece = length > 0 ? length : 1 + random() % 300;
            received.take(decoder, std::string_view(all).substr(at, piece));
            at += piece;
        }
        CAPTURE(length);
        REQUIRE(received == expected());
    }
}

TEST_CASE("a piece of the most bytes does not overfill a batch") {
    std::string messages;
    for (std::uint64_t i = 0; i < 100; ++i) {
        messages += message(i);
    }
    for (const std::size_t room : {1, 2, 3, 50}) {
        for (std::size_t cut = 0; cut < 26; ++cut) {
            ZmtpDecoder decoder;
            Received received;
            received.take(decoder, beginning());
            received.take(decoder, std::string_view(messages).substr(0, cut));
            Batch batch;
            batch.reset(room);
            decoder.take(std::string_view(messages).substr(cut, ZmtpDecoder::most_bytes(room)), batch,
                         received);
            CAPTURE(cut);
            const std::size_t count = room - batch.room();
            CHECK(count <= room);
            CHECK(count + 1 >= room);
        }
    }
    CHECK(ZmtpDecoder::most_bytes(0) == 0);
}

TEST_CASE("bytes that are not a publisher's are rejected, in pieces of any length") {
    const std::string many(9000, 'x');
    const std::string greeting = greeting_of();
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"HTTP/1.1 400 Bad Request\r\n", "the publisher does not speak ZMTP 3"},
        {std::string("\1\0", 2), "the publisher does not speak ZMTP 3"},  // ZMTP 1, which has no signature
        {'\xFF' + std::string(9, '\0'), "the publisher does not speak ZMTP 3"},
        {greeting_of("NULL", 0).substr(0, 11), "the publisher speaks ZMTP 1, but ZMTP 3 is needed"},
        {greeting_of("NULL", 1).substr(0, 11), "the publisher speaks ZMTP 2, but ZMTP 3 is needed"},
        {greeting_of("CURVE"), "the publisher asks for the mechanism CURVE, but only NULL is supported"},
        {greeting_of("PLAIN"), "the publisher asks for the mechanism PLAIN, but only NULL is supported"},
        {greeting_of("NULLX"), "the publisher asks for the mechanism NULLX, but only NULL is supported"},
        {greeting_of("\x1B[31m"), "the publisher asks for the mechanism ?[31m, but only NULL is supported"},
        {greeting + ready("SUB"), "the publisher's socket is of the type 'SUB', not PUB or XPUB"},
        {greeting + command("READY", ""), "the publisher's socket is of the type '', not PUB or XPUB"},
        {greeting + command("READY", "\x0BSocket"),
         "the publisher sent a READY command with invalid metadata"},
        {greeting + command("READY", property("Socket-Type", "PUB") + "\1"),
         "the publisher sent a READY command with invalid metadata"},
        {greeting + command("READY", "\1x\xFF\xFF\xFF\xFF"),
         "the publisher sent a READY command with invalid metadata"},
        {greeting + command("ERROR", "\7go away"), "the publisher rejects the connection: go away"},
        {greeting + command("ERROR", ""), "the publisher rejects the connection: "},
        {greeting + command("ERROR", "\xFFshort"), "the publisher rejects the connection: short"},
        {greeting + command("HELLO", ""), "the publisher sent another command before its READY command"},
        {greeting + message(0), "the publisher sent a message before the handshake ended"},
        {greeting + frame(kCommand, ""), "the publisher sent a command without a name"},
        {greeting + frame(kCommand, std::string(1, '\0')), "the publisher sent a command without a name"},
        {greeting + frame(kCommand, "\5READ"), "the publisher sent a command without a name"},
        {greeting + frame(kCommand | kMore, "\5READY"),
         "the publisher sent a frame with the invalid ZMTP flags 5"},
        {greeting + frame(8, ""), "the publisher sent a frame with the invalid ZMTP flags 8"},
        {beginning() + message(0) + frame(0x80, ""),
         "the publisher sent a frame with the invalid ZMTP flags 128"},
        {beginning() + '\2' + long_size(67'108'865),
         "the publisher sent a frame above the maximum size: 67108865 bytes"},
        {beginning() + '\2' + long_size(UINT64_MAX),
         "the publisher sent a frame above the maximum size: 18446744073709551615 bytes"},
        {beginning() + command("JUNK", many, kCommand | kLong),
         "the publisher sent a frame above the maximum size: 9005 bytes"},
        {beginning() + command("PING", "x"), "the publisher sent an invalid PING"},
        {beginning() + command("PING", std::string(19, 'x')), "the publisher sent an invalid PING"},
        {beginning() + command("ERROR", "\4late"), "the publisher rejects the connection: late"},
    };
    for (const auto& [bytes, text] : cases) {
        CHECK(refusal(bytes) == text);
    }
}

TEST_CASE("the longest message there is comes through") {
    ZmtpDecoder decoder;
    Received received;
    received.take(decoder, beginning());
    received.take(decoder, message(5, 67'108'864));
    received.take(decoder, message(6));
    CHECK(received.sequences == std::vector<std::uint64_t>{5, 6});
    CHECK(received.sizes == std::vector<std::uint32_t>{67'108'864, 24});
}

TEST_CASE("any bytes are taken or refused") {
    std::mt19937 random(7);
    int refused = 0;
    for (int round = 0; round < 2000; ++round) {
        ZmtpDecoder decoder;
        Received received;
        std::string bytes = beginning() + message(1);
        const std::size_t from = random() % bytes.size();
        for (std::size_t i = 0; i < 400; ++i) {
            bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(from), static_cast<char>(random()));
        }
        try {
            received.take(decoder, std::string_view(bytes).substr(0, from + 200));
            received.take(decoder, std::string_view(bytes).substr(from + 200));
        } catch (const ZmtpError&) {
            ++refused;
        }
    }
    CHECK(refused > 1000);
}

TEST_CASE("a connection keeps little between two pieces") {
    CHECK(sizeof(ZmtpDecoder) <= 128);
}
