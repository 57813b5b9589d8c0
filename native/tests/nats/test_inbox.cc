#include <doctest/doctest.h>

#include "nats/inbox.h"

using hydra::stream_sequence;

TEST_CASE("a reply subject tells which message of the stream it is") {
    CHECK(stream_sequence("$JS.ACK.stream.consumer.1.42.7.1700000000000000000.3") == 42);
    // Of newer servers: a domain and an account in front, perhaps a token at the end.
    CHECK(stream_sequence("$JS.ACK._.hash.stream.consumer.1.42.7.1700000000000000000.3") == 42);
    CHECK(stream_sequence("$JS.ACK._.hash.stream.consumer.1.42.7.1700000000000000000.3.token") == 42);
    CHECK(stream_sequence("$JS.ACK.stream.consumer.1.18446744073709551615.7.1.3") == 18446744073709551615U);
}

TEST_CASE("what comes from no stream has no sequence") {
    CHECK(stream_sequence(nullptr) == 0);
    CHECK(stream_sequence("") == 0);
    CHECK(stream_sequence("_INBOX.x.1") == 0);
    CHECK(stream_sequence("_INBOX.NAK.stream.consumer.1.42.7.1.3") == 0);
    CHECK(stream_sequence("$JS.ACK.stream.consumer.1.42") == 0);
    CHECK(stream_sequence("$JS.ACK.stream.consumer.1.none.7.1.3") == 0);
}
