// The stream's answers to a publisher, and those that never arrive because the connection was lost.
#include <doctest/doctest.h>

#include "nats/ack_inbox.h"

using hydra::Answers;

namespace {

constexpr std::uint32_t kEpoch = 3;

void answer(Answers& answers, std::uint64_t sequence) {
    answers.put({kEpoch, 1, sequence, 0}, false);
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
