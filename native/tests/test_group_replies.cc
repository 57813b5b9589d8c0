#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/group_replies.h"

using namespace hydra;

namespace {

using Texts = std::vector<std::string>;

Command configure_command(bool ready_follows = false) {
    return {.step = Step::configure, .epoch = 5, .number = 1, .body = "", .ready_follows = ready_follows};
}

const Ready kReady{.ids = {}, .epoch = 5, .number = 1, .endpoint = "a"};

// Answers in the epoch 5, and the messages since the last question: "TYPE WHAT IDS…".
struct GatheredReplies {
    Texts texts;
    GroupReplies answers{{1, 2, 3}, [this](const FromClient& message) {
                             std::visit(
                                 [this](const auto& it) {
                                     std::string text = it.kType;
                                     if constexpr (requires { it.command; }) {
                                         text += " " + it.command;
                                     } else if constexpr (requires { it.message; }) {
                                         text += " " + it.message;
                                     } else if constexpr (requires { it.endpoint; }) {
                                         text += " " + it.endpoint;
                                     }
                                     for (const Id id : it.ids) {
                                         text += " " + std::to_string(id);
                                     }
                                     texts.push_back(text);
                                 },
                                 message);
                         }};

    GatheredReplies() { answers.begin(5); }
    Texts take() { return std::exchange(texts, {}); }

    void ask(Id client, bool ready_follows = false) { answers.ask(client, configure_command(ready_follows)); }
};

const Error kError{.ids = {}, .epoch = 5, .number = 1, .message = "no", .fatal = false};

}  // namespace

TEST_CASE("the words of an ack are the steps of a command") {
    CHECK(step_of("configure") == Step::configure);
    CHECK(step_of("stop") == Step::stop);
    CHECK_FALSE(step_of("ping"));
}

TEST_CASE("acknowledgements are gathered by their step, and sent in time") {
    GatheredReplies it;
    it.answers.acknowledge(2, Step::start, 2, 7);
    it.answers.acknowledge(1, Step::configure, 1, 8);
    it.answers.acknowledge(1, Step::start, 2, 9);
    CHECK(it.answers.due_ns() == 7 + kGatherNs);
    it.answers.work(7 + kGatherNs);
    CHECK(it.take() == Texts{"ack start 1 2"});
    it.answers.send_acks(Step::configure);
    CHECK(it.take() == Texts{"ack configure 1"});
    CHECK(it.answers.due_ns() == kNeverNs);
}

TEST_CASE("ready is sent when all clients are ready") {
    GatheredReplies it;
    it.ask(1, true);
    it.ask(2, true);
    CHECK(it.answers.prove(1, kReady, 0));
    CHECK_FALSE(it.answers.prove(1, kReady, 0));
    it.answers.send_complete_readiness();
    CHECK(it.take().empty());
    it.answers.left(2);
    it.answers.send_complete_readiness();
    CHECK(it.take() == Texts{"ready a 1"});
}

TEST_CASE("the first error of a kind is sent at once, equal ones together") {
    GatheredReplies it;
    it.answers.complain({2}, kError, 0);
    CHECK(it.take() == Texts{"error no 2"});
    it.answers.complain({3}, kError, 0);
    it.answers.complain({1}, kError, 0);
    CHECK(it.take().empty());
    it.answers.begin(6);  // it may be why a client is about to end
    CHECK(it.take() == Texts{"error no 1 3"});
}

TEST_CASE("answers are sent again") {
    GatheredReplies it;
    it.ask(1);
    it.ask(2);
    it.answers.acknowledge(1, Step::configure, 1, 0);
    it.answers.prove(1, kReady, 0);
    it.answers.complain({2}, kError, 0);
    it.answers.fail(2, Step::configure, kError);
    it.answers.send_all();
    it.take();
    it.answers.repeat(1, configure_command(), 0);
    it.answers.repeat(2, configure_command(), 0);
    it.answers.send_all();
    CHECK(it.take() == Texts{"ack configure 1", "ready a 1", "error no 2"});
    it.ask(2);  // another command, which has not failed
    it.answers.repeat(2, configure_command(), 0);
    it.answers.send_all();
    CHECK(it.take() == Texts{"ack configure 2"});
}
