// The stream's answers to a publisher, and those that never arrive because the connection was lost.
#include <doctest/doctest.h>

#include "nats/ack_inbox.h"

using hydra::Answers;

namespace {

constexpr std::uint32_t kEpoch = 3;

void answer(Answers& answers, std::uint64_t sequence) {
    answers.put(kEpoch, sequence, false);
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

TEST_CASE("an answer with an error refuses the message, whatever the name of the stream") {
    REQUIRE(nats_Open(-1) == NATS_OK);  // the library frees its messages
    const auto refused = [](const std::string& text) {
        natsMsg* answer = nullptr;
        REQUIRE(natsMsg_Create(&answer, "_INBOX.1", nullptr, text.data(), static_cast<int>(text.size())) ==
                NATS_OK);
        const bool it = hydra::refuses(answer);
        natsMsg_Destroy(answer);
        return it;
    };
    CHECK_FALSE(refused(R"({"stream":"error", "seq":1})"));
    CHECK(refused(R"({"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},)"
                  R"("stream":"hydra","seq":0})"));
}
