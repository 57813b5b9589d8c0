#include <doctest/doctest.h>

#include "wire.h"

using namespace hydra;

TEST_CASE("what a subscriber sends, byte for byte") {
    const std::string sent(greeting().data(), greeting().size());
    CHECK(sent == greeting_of("NULL", 3, 0).replace(8, 1, 1, '\0'));
    CHECK(ready_command() == std::string("\x04\x19\x05READY\x0BSocket-Type\0\0\0\3SUB", 27));
    CHECK(subscription("") == std::string("\0\1\1", 3));
    CHECK(subscription("ab") == std::string("\0\3\1ab", 5));
    CHECK(pong_command("context") == "\x04\x0C\x04PONGcontext");
    CHECK(pong_command("") == "\x04\x05\x04PONG");
}

TEST_CASE("a greeting is refused with the first byte that is wrong") {
    const std::string good = greeting_of();
    for (std::size_t length = 0; length <= good.size(); ++length) {
        check_greeting(std::string_view(good).substr(0, length));
    }
    const std::string old = greeting_of("NULL", 1);
    check_greeting(std::string_view(old).substr(0, 10));
    CHECK_THROWS_AS(check_greeting(std::string_view(old).substr(0, 11)), ZmtpError);
    const std::string later = greeting_of("NULL", 4);
    check_greeting(later);  // the other end has to use this client's version
}

TEST_CASE("metadata in any order, their names in any case") {
    for (const std::string type : {"PUB", "XPUB"}) {
        check_ready(property("Socket-Type", type));
        check_ready(property("SOCKET-TYPE", type) + property("X-any", std::string(300, 'y')));
        check_ready(property("Identity", "") + property("socket-type", type));
    }
    CHECK_THROWS_AS(check_ready(property("Socket_Type", "PUB")), ZmtpError);
    CHECK_THROWS_AS(check_ready(property("Socket-Type", "PU")), ZmtpError);
}
