#include <doctest/doctest.h>
#include <unistd.h>

#include <memory>
#include <string>
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

Message message_of_stream(const hydra::Header& header = {},
                          const char* reply = "$JS.ACK.stream.consumer.1.42.7.1.3") {
    REQUIRE(nats_Open(-1) == NATS_OK);  // the library frees its messages
    natsMsg* made = nullptr;
    std::vector<char> bytes(hydra::kHeaderBytes);
    hydra::write_header(bytes.data(), header);
    REQUIRE(natsMsg_Create(&made, "topic", reply, bytes.data(), static_cast<int>(bytes.size())) == NATS_OK);
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

TEST_CASE("a batch with less room takes a part of the messages that follow one another") {
    hydra::Inbox inbox;
    for (std::uint64_t i = 0; i < 5; ++i) {
        const std::uint64_t skipped = i < 4 ? 0 : 1;  // a message of the stream that is not for this consumer
        const std::string reply = "$JS.ACK.stream.consumer.1." + std::to_string(42 + i + skipped) + "." +
                                  std::to_string(7 + i) + ".1.3";
        CHECK(inbox.put(message_of_stream({1, 2, 10 + i, 5}, reply.c_str()).get()));
    }
    hydra::Batch batch;
    batch.reset(3);
    CHECK(inbox.take(batch));
    CHECK(inbox.position() == 44);
    CHECK(inbox.delivered() == 9);
    REQUIRE(batch.runs().size() == 1);
    CHECK(batch.runs()[0] == hydra::Run{{1, 2, 10, 5}, 3, hydra::kHeaderBytes});
    batch.reset(3);
    CHECK_FALSE(inbox.take(batch));
    CHECK(inbox.position() == 47);
    CHECK(inbox.delivered() == 11);
    REQUIRE(batch.runs().size() == 2);
    CHECK(batch.runs()[0] == hydra::Run{{1, 2, 13, 5}, 1, hydra::kHeaderBytes});
    CHECK(batch.runs()[1] == hydra::Run{{1, 2, 14, 5}, 1, hydra::kHeaderBytes});
}

TEST_CASE("the client is woken by the last of several messages, or by as many as wait at most") {
    const Message message = message_of_stream();
    hydra::Batch batch;
    const auto woken = [&](hydra::Inbox& inbox) {
        std::uint64_t times = 0;
        return read(inbox.fd(), &times, sizeof times) > 0;
    };
    hydra::Inbox inbox;
    CHECK(inbox.put(message.get(), true));
    CHECK_FALSE(woken(inbox));
    CHECK(inbox.put(message.get()));
    CHECK(woken(inbox));
    CHECK(inbox.put(message.get()));
    CHECK_FALSE(woken(inbox));  // the client has not taken them yet
    batch.reset(hydra::kBatchLimit);
    CHECK_FALSE(inbox.take(batch));
    CHECK(batch.room() == hydra::kBatchLimit - 3);
    for (std::size_t i = 0; i < hydra::kBatchLimit; ++i) {
        CHECK(inbox.put(message.get(), true));
    }
    CHECK(woken(inbox));
    hydra::Inbox limited(3);
    for (int i = 0; i < 5; ++i) {
        CHECK(limited.put(message.get(), true));
    }
    CHECK(limited.dropped() == 2);
    CHECK(woken(limited));
}
