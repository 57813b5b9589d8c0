#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "nats/inbox.h"

namespace {

std::uint64_t stream_sequence(const char* reply) {
    return hydra::stream_sequences(reply).stream;
}

}  // namespace

TEST_CASE("a reply subject has the stream sequence of a message") {
    CHECK(stream_sequence("$JS.ACK.stream.consumer.1.42.7.1700000000000000000.3") == 42);
    // Newer servers add a domain and an account in front, and perhaps a token at the end.
    CHECK(stream_sequence("$JS.ACK._.hash.stream.consumer.1.42.7.1700000000000000000.3") == 42);
    CHECK(stream_sequence("$JS.ACK._.hash.stream.consumer.1.42.7.1700000000000000000.3.token") == 42);
    CHECK(stream_sequence("$JS.ACK.stream.consumer.1.18446744073709551615.7.1.3") == 18446744073709551615U);
    CHECK(hydra::stream_sequences("$JS.ACK.stream.consumer.1.42.7.1700000000000000000.3").consumer == 7);
    CHECK(hydra::stream_sequences("$JS.ACK._.hash.stream.consumer.1.42.7.1700000000000000000.3").consumer ==
          7);
}

TEST_CASE("a message that is not from a stream has no sequence") {
    CHECK(stream_sequence(nullptr) == 0);
    CHECK(stream_sequence("") == 0);
    CHECK(stream_sequence("_INBOX.x.1") == 0);
    CHECK(stream_sequence("_INBOX.NAK.stream.consumer.1.42.7.1.3") == 0);
    CHECK(stream_sequence("$JS.ACK.stream.consumer.1.42") == 0);
    CHECK(stream_sequence("$JS.ACK.stream.consumer.1.none.7.1.3") == 0);
}

namespace {

using Message = std::unique_ptr<natsMsg, decltype(&natsMsg_Destroy)>;

Message message_of_stream() {
    REQUIRE(nats_Open(-1) == NATS_OK);  // the library frees its messages
    natsMsg* made = nullptr;
    const std::vector<char> bytes(hydra::kHeaderBytes);
    REQUIRE(natsMsg_Create(&made, "topic", "$JS.ACK.stream.consumer.1.42.7.1.3", bytes.data(),
                           static_cast<int>(bytes.size())) == NATS_OK);
    return {made, natsMsg_Destroy};
}

}  // namespace

TEST_CASE("an inbox gives what was put into it, and takes nothing more once it is closed") {
    const Message message = message_of_stream();
    hydra::Inbox inbox;
    hydra::Batch batch;
    for (std::size_t i = 0; i < hydra::kBatchLimit; ++i) {
        REQUIRE(inbox.put(message.get()));
    }
    CHECK(inbox.take(batch));
    CHECK(batch.full());
    CHECK(inbox.position() == 42);
    CHECK(inbox.delivered() == 7);
    for (std::size_t i = 0; i < hydra::kBatchLimit; ++i) {
        REQUIRE(inbox.put(message.get()));
    }
    inbox.close();
    CHECK_FALSE(inbox.put(message.get()));  // full: it would have waited
    inbox.fail("the stream is gone");
    batch.reset(1);
    CHECK_THROWS_WITH(inbox.take(batch), "the stream is gone");
}

TEST_CASE("an inbox with a limit drops and counts the messages beyond it") {
    const Message message = message_of_stream();
    hydra::Inbox inbox(3);
    for (int i = 0; i < 5; ++i) {
        CHECK(inbox.put(message.get()));
    }
    CHECK(inbox.dropped() == 2);
    hydra::Batch batch;
    CHECK_FALSE(inbox.take(batch));
    CHECK(batch.room() == hydra::kBatchLimit - 3);
    CHECK(inbox.put(message.get()));
    CHECK(inbox.dropped() == 2);
}
