// The stream's answers to a publisher, and those that never arrive because the connection was lost.
#include <doctest/doctest.h>

#include "nats/ack_inbox.h"

using hydra::Answers;

namespace {

constexpr std::uint32_t kEpoch = 3;

void answer(Answers& answers, std::uint64_t sequence) {
    answers.put(kEpoch, sequence, {});
    answers.drain();
}

}  // namespace

TEST_CASE("answers that are given up leave the window, and are entered if they arrive late") {
    Answers answers;
    answers.begin(kEpoch);
    answers.accept(5);
    answers.accept_probe();
    answer(answers, 0);
    CHECK(answers.expected() == 4);
    answers.give_up();
    CHECK(answers.expected() == 0);
    CHECK(answers.probes() == 0);
    answers.accept(2);
    answer(answers, 4);  // late
    CHECK(answers.expected() == 2);
    answer(answers, 5);
    CHECK(answers.expected() == 1);
    CHECK(answers.ledger().acknowledged() == 3);
    CHECK(answers.ledger().pending() == 4);
    answers.begin(kEpoch);
    CHECK(answers.expected() == 0);
}

TEST_CASE("the reply subject of a message names it") {
    hydra::ReplySubject replies("_INBOX.12.34");
    CHECK(replies.pattern() == "_INBOX.12.34.>");
    CHECK(std::string(replies.of(7, 42)) == "_INBOX.12.34.7.42");
    const auto read = hydra::ReplySubject::read(replies.of(UINT32_MAX, UINT64_MAX));
    CHECK(read.epoch == UINT32_MAX);
    CHECK(read.sequence == UINT64_MAX);
}

TEST_CASE("an answer with an error refuses the message for its reason, whatever the name of the stream") {
    REQUIRE(nats_Open(-1) == NATS_OK);  // the library frees its messages
    const auto refusal = [](const std::string& text) {
        natsMsg* answer = nullptr;
        REQUIRE(natsMsg_Create(&answer, "_INBOX.1", nullptr, text.data(), static_cast<int>(text.size())) ==
                NATS_OK);
        const hydra::FirstReason it = hydra::refusal(answer).value_or(hydra::FirstReason());
        natsMsg_Destroy(answer);
        return it;
    };
    CHECK(refusal(R"({"stream":"error", "seq":1})").reason.empty());
    const auto full =
        refusal(R"({"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},)"
                R"("stream":"hydra","seq":0})");
    CHECK(full.reason == "stream_full");
    CHECK(full.text == "maximum messages exceeded");
    CHECK(hydra::refusal(10'077, "no space left on device").reason == "no_space");
    CHECK(hydra::refusal(10'054, "").reason == "message_too_large");
    CHECK(hydra::refusal(1, "unusual").reason == "other");
    CHECK(refusal(R"({"error":true, "error":1})").reason == "other");
}

TEST_CASE("the first reason of an epoch is kept, with the messages that were refused for it") {
    Answers answers;
    answers.begin(kEpoch);
    answers.accept(4);
    hydra::FirstReason full;
    full.add("stream_full", "maximum messages exceeded", 1);
    hydra::FirstReason other;
    other.add("other", "unusual", 1);
    answers.put(kEpoch, 0, full);
    answers.put(kEpoch, 1, other);
    answers.put(kEpoch, 2, full);
    answers.put(kEpoch + 1, 3, full);  // of another epoch
    answers.drain();
    CHECK(answers.refused().reason == "stream_full");
    CHECK(answers.refused().messages == 2);
    CHECK(answers.ledger().failed() == 3);
    answers.begin(kEpoch);
    CHECK(answers.refused().reason.empty());
}
