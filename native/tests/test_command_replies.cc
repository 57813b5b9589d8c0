#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "common/command_replies.h"

using namespace hydra;

namespace {

Command configure(std::uint32_t epoch = 1, std::uint32_t number = 1) {
    return {.step = Step::configure,
            .epoch = epoch,
            .number = number,
            .body = "configure " + std::to_string(number)};
}

Command start() {
    return {.step = Step::start, .epoch = 1, .number = 2, .body = "start"};
}

Command stop() {
    return {.step = Step::stop, .epoch = 1, .number = 3, .body = "stop"};
}

// The clients of the first command to resend.
Ids resends(CommandReplies& commands, std::int64_t now_ns) {
    const auto all = commands.resends(now_ns);
    return all.empty() ? Ids{} : all.front().ids;
}

}  // namespace

TEST_CASE("a client that has answered a command does not get it again") {
    CommandReplies commands({1, 2, 3, 4}, Role::subscriber);
    CommandTargets given = commands.give(configure(), {1, 2, 3}, 0);
    CHECK(given.recipients == Ids{1, 2, 3});
    CHECK(given.fresh == Ids{1, 2, 3});
    CHECK(commands.answer(2, Step::configure, 1));
    CHECK_FALSE(commands.answer(2, Step::configure, 1));
    CHECK_FALSE(commands.answer(4, Step::configure, 1));  // it got no command
    given = commands.give(configure(), {1, 2}, 5);
    CHECK(given.recipients == Ids{1});
    CHECK(given.fresh.empty());
    CHECK(given.answered == Ids{2});
    CHECK(commands.give(configure(), {4}, 5).fresh == Ids{4});
}

TEST_CASE("another command of the same kind makes the answers void") {
    CommandReplies commands({1, 2}, Role::subscriber);
    commands.give(configure(), {1, 2}, 0);
    commands.answer(1, Step::configure, 1);
    commands.answer(2, Step::configure, 1);
    CHECK_FALSE(commands.awaited(Step::configure));
    const CommandTargets given = commands.give(configure(1, 5), {1}, 0);
    CHECK(given.recipients == Ids{1});
    CHECK(given.fresh == Ids{1});
    CHECK(commands.awaited(Step::configure));
    CHECK(commands.late(1, Step::configure, 1));
    CHECK_FALSE(commands.answer(1, Step::configure, 1));
    CHECK(commands.answer(1, Step::configure, 5));
    CHECK_FALSE(commands.awaited(Step::configure));
}

TEST_CASE("a command without an answer is resent every 2 s") {
    CommandReplies commands({1, 2, 3}, Role::subscriber);
    commands.give(configure(), {1, 2, 3}, 100);
    commands.answer(1, Step::configure, 1);
    CHECK(commands.due_ns() == 100 + kResendEveryNs);
    CHECK(resends(commands, 99 + kResendEveryNs).empty());
    CHECK(resends(commands, 100 + kResendEveryNs) == Ids{2, 3});
    commands.give(configure(), {3},
                  200 + kResendEveryNs);  // the controller repeats it, which delays the next resend
    CHECK(resends(commands, 100 + 2 * kResendEveryNs) == Ids{2});
    CHECK(resends(commands, 200 + 2 * kResendEveryNs) == Ids{3});
    commands.left(3);
    CHECK(resends(commands, 100 + 3 * kResendEveryNs) == Ids{2});
    commands.answer(2, Step::configure, 1);
    CHECK(commands.due_ns() == kNeverNs);
}

TEST_CASE("an epoch begins with its first configure") {
    CommandReplies commands({1}, Role::subscriber);
    CHECK(commands.begins(configure(0)));
    commands.begin(5);
    commands.give(configure(5), {1}, 0);
    CHECK_FALSE(commands.begins(configure(5)));
    CHECK_FALSE(commands.begins(configure(4)));
    CHECK_FALSE(commands.begins({.step = Step::start, .epoch = 6, .number = 2, .body = "start"}));
    CHECK(commands.begins(configure(6)));
    commands.begin(6);
    CHECK(commands.epoch() == 6);
    CHECK_FALSE(commands.has_had(1, Step::configure));
    CHECK_FALSE(commands.awaited(Step::configure));
    CHECK(commands.due_ns() == kNeverNs);
}

TEST_CASE("a command that a client ignores is sent, but not resent") {
    CommandReplies commands({1, 2}, Role::publisher);
    commands.give(configure(), {1}, 0);
    commands.answer(1, Step::configure, 1);
    CHECK(commands.give(stop(), {1}, 0).recipients == Ids{1});
    CHECK(commands.give(start(), {2}, 0).recipients == Ids{2});
    CHECK(commands.due_ns() == kNeverNs);
    commands.give(start(), {1}, 0);
    CHECK(commands.give(stop(), {1}, 0).fresh == Ids{1});
    CHECK(commands.awaited(Step::stop));
}

TEST_CASE("the process that replaces a client has had no command") {
    CommandReplies commands({1, 2}, Role::subscriber);
    commands.give(configure(), {1, 2}, 0);
    commands.answer(1, Step::configure, 1);
    commands.left(1);
    commands.left(2);
    CHECK_FALSE(commands.awaited(Step::configure));
    CHECK(commands.give(configure(), {1, 2}, 0).fresh == Ids{1, 2});
}
