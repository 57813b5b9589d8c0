#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol.h"
#include "common/relay_state.h"
#include "ranges.h"

using namespace hydra;

namespace {

using Texts = std::vector<std::string>;

std::string ids_text(const Ids& ids) {
    std::string text;
    for (const Id id : ids) {
        text += " " + std::to_string(id);
    }
    return text;
}

// Each command of an epoch has its own number, unless a test gives it another one.
constexpr std::uint32_t number_of(Step step) {
    return static_cast<std::uint32_t>(at(step)) + 1;
}

// The number of the command that a message answers: an error answers `configure`.
template <typename Message>
std::uint32_t number_answered(const Message& it) {
    if constexpr (requires { it.command; }) {
        return number_of(step_of(it.command).value_or(Step::configure));
    } else if constexpr (requires { it.publisher; }) {
        return number_of(Step::stop);
    }
    return number_of(Step::configure);
}

// A relay with the test's own time; the messages that it sent are short texts.
class Group : private RelayOutputs {
  public:
    explicit Group(std::uint32_t count, Role role = Role::subscriber)
        : role_(role), count_(count), relaying(all(count), role, *this) {}

    static Ids all(std::uint32_t count) {
        Ids ids(count);
        std::iota(ids.begin(), ids.end(), 1);
        return ids;
    }

    // The messages to clients since the last call, "CONNECTION TYPE IDS…"; and those to the controller.
    Texts to_clients() { return std::exchange(to_clients_, {}); }
    Texts up() { return std::exchange(up_, {}); }

    void at(std::int64_t ms) {
        while (relaying.due_ns() <= ms * kMillisecondNs) {
            now_ns = std::max(now_ns, relaying.due_ns());
            relaying.work(now_ns);
        }
        now_ns = ms * kMillisecondNs;
    }

    void obey(FromController message) {
        std::visit(
            [](auto& it) {
                if constexpr (requires { it.kStep; }) {
                    it.number = it.number == 0 ? number_of(it.kStep) : it.number;
                }
            },
            message);
        relaying.obey(message, encode(message), now_ns);
    }

    void hello(const std::string& connection, const Ids& ids, std::uint32_t incarnation = 0) {
        relaying.take_message(
            connection,
            Hello{.ids = ids, .role = role_, .incarnation = incarnation, .pid = 100 + ids.front()}, now_ns);
    }

    // All clients have joined, each in its own process, and are known to the controller.
    void begin() {
        obey(Welcome{.ids = {}, .run = "run", .silence_s = 30});
        for (const Id id : all(count_)) {
            hello("c" + std::to_string(id), {id});
        }
        at(now_ns / kMillisecondNs);
        obey(Welcome{.ids = all(count_), .run = "run", .silence_s = 30});
        to_clients();
        up();
    }

    // From the process of one client.
    void take_message(Id id, FromClient&& message) {
        std::visit(
            [id](auto& it) {
                if (it.ids.empty()) {
                    it.ids = {id};
                }
                if constexpr (requires { it.number = 0U, it.epoch; } && !requires { it.columns; }) {
                    it.number = it.number == 0 && it.epoch != 0 ? number_answered(it) : it.number;
                }
            },
            message);
        relaying.take_message("c" + std::to_string(id), std::move(message), now_ns);
    }

    // From a process: one report for each of these clients.
    void reported(const std::string& connection, const Ids& ids, std::uint32_t epoch = 1,
                  std::uint32_t number = number_of(Step::finish), const SubscriberReport& report = {}) {
        BatchBuilder builder;
        for (const Id id : ids) {
            builder.add(id, report, false);
        }
        BatchColumns it = builder.take();
        relaying.take_batch(connection, {.ids = ids, .epoch = epoch, .number = number, .columns = it.columns},
                            std::move(it.payload), now_ns);
    }

    void configure(std::uint32_t epoch, Ids ids = {}, bool probe = false, bool cohort = false,
                   std::uint32_t number = 1) {
        obey(Configure{
            .ids = std::move(ids), .epoch = epoch, .number = number, .probe = probe, .cohort = cohort});
    }

  private:
    void to_client(const std::string& connection, const std::string& frame) override {
        std::visit(
            [&](const auto& it) { to_clients_.push_back(connection + " " + it.kType + ids_text(it.ids)); },
            decode(frame));
    }

    void to_controller(const FromClient& message) override {
        std::visit(
            [&](const auto& it) {
                std::string text = it.kType;
                if constexpr (requires { it.command; }) {
                    text += " " + it.command;
                }
                if constexpr (requires { it.message; }) {
                    text += " '" + it.message + "'";
                }
                if constexpr (requires { it.endpoint; }) {
                    text += it.endpoint.empty() ? "" : " " + it.endpoint;
                }
                up_.push_back(text + ids_text(it.ids));
            },
            message);
    }

    void to_controller(const BatchHead& head, const std::string& payload) override {
        up_.push_back("batch" + ids_text(head.ids));
        payloads.push_back(payload);
    }

    void kill(const Ids& ids, std::uint32_t incarnation) override {
        up_.push_back("kill" + ids_text(ids) + " up to " + std::to_string(incarnation));
    }

    Role role_;
    std::uint32_t count_;
    Texts to_clients_;
    Texts up_;

  public:
    std::vector<std::string> payloads;
    std::int64_t now_ns = 0;
    RelayState relaying;
};

Ack ack(std::uint32_t epoch, const char* command) {
    return {.epoch = epoch, .command = command};
}

SubscriberReport report(std::size_t ranges) {
    SubscriberReport body;
    body.ledgers.push_back({.publisher = 9, .missing_ranges = separate_ranges(ranges)});
    return body;
}

}  // namespace

// --- who is there -----------------------------------------------------------------------------------------

TEST_CASE("clients are welcomed when the relay is, and announced together") {
    Group it(3);
    it.hello("c1", {1});
    it.hello("c2", {2});
    it.hello("c2", {2});  // it repeats hello: it has no welcome
    it.at(1000);
    CHECK(it.to_clients().empty());
    CHECK(it.up().empty());
    it.obey(Welcome{.ids = {}, .run = "run", .silence_s = 30});
    CHECK(it.to_clients() == Texts{"c1 welcome", "c2 welcome"});
    it.at(1000);
    CHECK(it.up() == Texts{"joined 1 2"});
    it.hello("c3", {3});
    CHECK(it.to_clients() == Texts{"c3 welcome"});
    it.at(1000);
    CHECK(it.up() == Texts{"joined 3"});  // at once: no other client can join
    it.hello("c3", {3});
    CHECK(it.to_clients() == Texts{"c3 welcome"});
}

TEST_CASE("clients that join within 10 ms are registered together") {
    Group it(4);
    it.obey(Welcome{.ids = {}, .run = "run", .silence_s = 30});
    it.at(0);
    it.hello("c1", {1});
    it.at(5);
    it.hello("c2", {2});
    it.at(9);
    CHECK(it.up().empty());
    it.at(11);
    CHECK(it.up() == Texts{"joined 1 2"});
    it.hello("c3", {3});
    it.at(25);
    CHECK(it.up() == Texts{"joined 3"});
}

TEST_CASE("a client that the controller does not know is registered again every 2 s") {
    Group it(2);
    it.obey(Welcome{
        .ids = {1, 2}, .run = "run", .silence_s = 0});  // the relay's own welcome: no client was registered
    it.hello("c1", {1});
    it.hello("c2", {2});
    it.at(1999);
    CHECK(it.up() == Texts{"joined 1 2"});
    it.obey(Welcome{.ids = {2}, .run = "run", .silence_s = 0});
    it.at(4000);
    CHECK(it.up() == Texts{"joined 1", "joined 1"});
    it.obey(Welcome{.ids = {1}, .run = "run", .silence_s = 0});
    it.at(20'000);
    CHECK(it.up().empty());
}

TEST_CASE("a process that ended is reported, and its successor registered, in any order") {
    Group it(2);
    it.begin();
    const ChildExit first{.ids = {2}, .incarnation = 0, .pid = 102, .status = -9, .replaced = true};
    SUBCASE("the end comes first") {
        it.relaying.take_exit(first, it.now_ns);
        it.hello("d2", {2}, 1);
        it.at(10);
        CHECK(it.up() == Texts{"child_exit 2", "joined 2"});
    }
    SUBCASE("the successor comes first") {
        it.hello("d2", {2}, 1);
        it.relaying.take_exit(first, it.now_ns);
        it.at(10);
        CHECK(it.up() == Texts{"child_exit 2", "joined 2"});
    }
    it.to_clients();
    it.obey(Welcome{.ids = {2}, .run = "run", .silence_s = 0});
    it.configure(1);
    CHECK(it.to_clients() == Texts{"c1 configure", "d2 configure"});
    it.hello("e2", {2}, 1);  // no higher incarnation
    CHECK(it.to_clients().empty());
}

TEST_CASE("a process's last messages may arrive after its end") {
    Group it(2);
    it.begin();
    it.relaying.take_exit({.ids = {2}, .pid = 102, .status = 1, .replaced = true}, it.now_ns);
    it.take_message(2, Error{.epoch = 0, .message = "no memory", .fatal = true});
    CHECK(it.up() == Texts{"child_exit 2", "error 'no memory' 2"});
}

TEST_CASE("a command does not reach a successor that the controller does not know of") {
    Group it(2);
    it.begin();
    it.relaying.take_exit({.ids = {2}, .pid = 102, .status = -9, .replaced = true}, it.now_ns);
    it.hello("d2", {2}, 1);
    it.at(10);
    it.to_clients();
    it.configure(1);
    it.obey(Start{.ids = {2}, .epoch = 1});
    it.obey(Stop{.epoch = 1});
    it.obey(Finish{.epoch = 1});
    it.configure(0);  // of an earlier epoch: not stored
    CHECK(it.to_clients() == Texts{"c1 configure", "c1 stop", "c1 finish", "c1 configure"});
    it.obey(Quit{.ids = {2}});
    CHECK(it.to_clients() == Texts{"d2 quit"});
    it.obey(Welcome{.ids = {2}, .run = "run", .silence_s = 0});
    it.configure(1);
    CHECK(it.to_clients() == Texts{"c1 configure", "d2 configure"});
}

TEST_CASE("a welcome of one that has ended does not name its successor") {
    Group it(2);
    const Welcome welcome{.ids = {2}, .run = "run", .silence_s = 0};
    it.begin();
    it.relaying.take_exit({.ids = {2}, .pid = 102, .status = -9, .replaced = true}, it.now_ns);
    it.hello("d2", {2}, 1);
    it.at(500);
    it.relaying.take_exit({.ids = {2}, .incarnation = 1, .status = -9, .replaced = true}, it.now_ns);
    it.hello("e2", {2}, 2);
    it.at(1000);
    CHECK(it.up() == Texts{"child_exit 2", "joined 2", "child_exit 2", "joined 2"});
    it.obey(welcome);  // for the process that was registered first
    it.to_clients();
    it.configure(1);
    CHECK(it.to_clients() == Texts{"c1 configure"});
    it.at(2499);
    CHECK(it.up().empty());
    it.at(2600);
    CHECK(it.up() == Texts{"joined 2"});
    it.obey(welcome);
    it.to_clients();
    it.configure(1);
    CHECK(it.to_clients() == Texts{"c1 configure", "e2 configure"});
    it.at(10'000);
    CHECK(it.up().empty());
}

TEST_CASE("a packed process's last error is about those that it names") {
    Group it(3);
    it.obey(Welcome{.ids = {}, .run = "run", .silence_s = 30});
    it.hello("a", {1, 2});
    it.relaying.take_exit({.ids = {1, 2}, .status = 1, .replaced = true}, it.now_ns);
    it.relaying.take_message("a", Error{.ids = {2, 3}, .epoch = 0, .message = "no memory"}, it.now_ns);
    CHECK(it.up() == Texts{"child_exit 1 2", "error 'no memory' 2"});
}

TEST_CASE("the end of all is asked for without ids") {
    Group it(2);
    it.begin();
    it.relaying.take_exit({.ids = {2}, .pid = 102, .status = 0, .replaced = false}, it.now_ns);
    it.up();
    it.obey(Evict{});
    CHECK(it.up() == Texts{"child_exit 2", "kill 1 2 up to 4294967295"});
}

TEST_CASE("an eviction of clients that are dead for good is answered with their end") {
    Group it(3);
    it.begin();
    it.relaying.take_exit({.ids = {2}, .pid = 102, .status = 0, .replaced = false}, it.now_ns);
    it.up();
    it.obey(Evict{.ids = {2, 3, 77}, .incarnation = 4});
    CHECK(it.up() == Texts{"child_exit 2", "kill 2 3 up to 4"});
    it.obey(Evict{.ids = {3}, .incarnation = {}});
    CHECK(it.up() == Texts{"kill 3 up to 4294967295"});
}

TEST_CASE("quit is resent to clients that are still connected") {
    Group it(3);
    it.begin();
    it.obey(Quit{.ids = {1, 3}});
    CHECK(it.to_clients() == Texts{"c1 quit", "c3 quit"});
    it.relaying.take_exit({.ids = {1}, .pid = 101, .status = 0}, it.now_ns);
    it.at(4000);
    CHECK(it.to_clients() == Texts{"c3 quit", "c3 quit"});
    CHECK_FALSE(it.relaying.dismissed());
    it.obey(Quit{});
    CHECK(it.relaying.dismissed());
    it.to_clients();
    it.hello("d1", {1}, 1);  // it was on its way
    CHECK(it.to_clients() == Texts{"d1 welcome", "d1 quit"});
}

// --- answers ----------------------------------------------------------------------------------------------

TEST_CASE("acks are sent when all have answered, or 10 ms after the first") {
    Group it(3);
    it.begin();
    it.configure(1, {1, 2});
    CHECK(it.to_clients() == Texts{"c1 configure", "c2 configure"});
    it.take_message(2, ack(1, "configure"));
    CHECK(it.up().empty());
    it.take_message(1, ack(1, "configure"));
    CHECK(it.up() == Texts{"ack configure 1 2"});
    it.obey(Start{.epoch = 1});
    CHECK(it.to_clients() == Texts{"c1 start", "c2 start", "c3 start"});
    it.take_message(1, ack(1, "start"));
    it.at(9);
    CHECK(it.up().empty());
    it.at(10);
    CHECK(it.up() == Texts{"ack start 1"});
    it.relaying.take_exit({.ids = {2}, .status = -9, .replaced = true}, it.now_ns);
    it.take_message(1, ack(1, "start"));  // known
    CHECK(it.up() == Texts{"child_exit 2"});
}

TEST_CASE("answers that waited for a client that died are sent at once") {
    Group it(2);
    it.begin();
    it.configure(1);
    it.take_message(1, ack(1, "configure"));
    it.relaying.take_exit({.ids = {2}, .status = -9, .replaced = true}, it.now_ns);
    CHECK(it.up() == Texts{"child_exit 2", "ack configure 1"});
}

TEST_CASE("readiness is gathered by its endpoint") {
    Group it(3, Role::publisher);
    it.begin();
    it.configure(1);
    for (const Id id : {3, 1, 2}) {
        it.take_message(id, ack(1, "configure"));
        it.take_message(id, Ready{.epoch = 1, .endpoint = id == 2 ? "b" : "a"});
    }
    CHECK(it.up() == Texts{"ack configure 1 2 3", "ready a 1 3", "ready b 2"});
}

TEST_CASE("only subscribers that are to prove their readiness are waited for") {
    Group it(2);
    it.begin();
    it.configure(1, {1}, true);
    it.configure(1, {2}, false);
    it.take_message(1, ack(1, "configure"));
    it.take_message(2, ack(1, "configure"));
    it.take_message(1, Ready{.epoch = 1});
    CHECK(it.up() == Texts{"ack configure 1 2", "ready 1"});
}

TEST_CASE("the first error of a kind is sent at once, equal ones together") {
    Group it(4);
    it.begin();
    it.configure(1);
    for (const Id id : {1, 3, 2}) {
        it.take_message(id, Error{.epoch = 1, .message = "an unknown field"});
    }
    CHECK(it.up() == Texts{"error 'an unknown field' 1"});
    it.take_message(4, Error{.epoch = 1, .message = "no topic"});
    CHECK(it.up() == Texts{"error 'no topic' 4", "error 'an unknown field' 2 3"});
}

TEST_CASE("a client whose configuration failed gets the other commands until it succeeds") {
    Group it(1);
    it.begin();
    it.configure(1);
    it.take_message(1, Error{.epoch = 1, .message = "an unknown field"});
    it.obey(Start{.epoch = 1});
    it.to_clients();
    it.at(2000);
    CHECK(it.to_clients() == Texts{"c1 start"});
}

TEST_CASE("progress is passed on; what is of another epoch, or about others, is not") {
    Group it(2);
    it.begin();
    it.configure(5);
    it.take_message(1, Progress{.epoch = 5, .messages = 3});
    it.take_message(1, Progress{.ids = {2}, .epoch = 5, .messages = 3});
    it.take_message(1, Progress{.epoch = 4, .messages = 3});
    it.take_message(1, ack(4, "configure"));
    it.take_message(1, Ready{.epoch = 4});
    it.take_message(1, Error{.epoch = 4, .message = "no topic"});
    it.reported("c1", {1}, 4);
    it.reported("c1", {1, 2}, 5);
    it.reported("stranger", {1}, 5);
    it.relaying.take_message("stranger", ack(5, "configure"), it.now_ns);
    it.relaying.end();
    CHECK(it.up() == Texts{"progress 1"});
}

// --- told again -------------------------------------------------------------------------------------------

TEST_CASE("a client that has not answered gets the command again every 2 s") {
    Group it(3);
    it.begin();
    it.configure(1);
    it.to_clients();
    it.take_message(2, ack(1, "configure"));
    it.at(1999);
    CHECK(it.to_clients().empty());
    it.at(2000);
    CHECK(it.to_clients() == Texts{"c1 configure", "c3 configure"});
    it.take_message(1, ack(1, "configure"));
    it.at(4000);
    CHECK(it.to_clients() == Texts{"c3 configure"});
    it.configure(2, {1, 2});  // the earlier epoch has ended for all clients
    it.to_clients();
    it.at(6000);
    CHECK(it.to_clients() == Texts{"c1 configure", "c2 configure"});
}

TEST_CASE("a command that the controller repeats is answered from memory") {
    Group it(3);
    it.begin();
    it.configure(1, {}, true);
    for (const Id id : {1, 2}) {
        it.take_message(id, ack(1, "configure"));
        it.take_message(id, Ready{.epoch = 1});
    }
    it.at(10);
    it.to_clients();
    it.up();
    it.configure(1, {2, 3}, true);
    CHECK(it.to_clients() == Texts{"c3 configure"});
    it.at(20);
    CHECK(it.up() == Texts{"ack configure 2", "ready 2"});
    it.take_message(3, Error{.epoch = 1, .message = "no"});
    CHECK(it.up() == Texts{"error 'no' 3"});
    it.configure(1, {}, true);
    CHECK(it.to_clients().empty());
    CHECK(it.up() == Texts{"ack configure 1 2", "error 'no' 3", "ready 1 2"});
}

TEST_CASE("a late answer to an earlier command of a kind does not answer the next one") {
    Group it(1, Role::publisher);
    it.begin();
    it.configure(1, {}, true);
    it.to_clients();
    it.configure(1, {}, false, false, 5);
    CHECK(it.to_clients() == Texts{"c1 configure"});
    it.take_message(1, ack(1, "configure"));
    it.take_message(1, Ready{.epoch = 1, .endpoint = "a"});
    it.take_message(1, Error{.epoch = 1, .message = "an unknown field"});
    it.at(100);
    CHECK(it.up().empty());
    it.take_message(1, Ack{.epoch = 1, .number = 5, .command = "configure"});
    it.take_message(1, Ready{.epoch = 1, .number = 5, .endpoint = "a"});
    CHECK(it.up() == Texts{"ack configure 1", "ready a 1"});
    it.obey(Start{.epoch = 1});
    it.obey(Stop{.epoch = 1});
    it.obey(Stop{.epoch = 1, .number = 6});
    it.take_message(1, Report{.epoch = 1, .number = 3, .publisher = {}});
    CHECK(it.up().empty());
    it.take_message(1, Report{.epoch = 1, .number = 6, .publisher = {}});
    CHECK(it.up() == Texts{"report 1"});
}

TEST_CASE("a replacement gets no command that was sent before it joined") {
    Group it(2);
    it.begin();
    it.configure(1);
    it.relaying.take_exit({.ids = {2}, .status = -9, .replaced = true}, it.now_ns);
    it.hello("d2", {2}, 1);
    it.at(10);
    it.obey(Welcome{.ids = {2}, .run = "run", .silence_s = 0});
    it.to_clients();
    it.take_message(1, ack(1, "configure"));
    it.obey(Start{.epoch = 1});
    CHECK(it.to_clients() == Texts{"c1 start", "d2 start"});
    it.at(3000);
    CHECK(it.to_clients() == Texts{"c1 start"});  // the other one ignores it
}

TEST_CASE("a stop without a start is not resent to a publisher") {
    Group it(1, Role::publisher);
    it.begin();
    it.configure(1);
    it.take_message(1, ack(1, "configure"));
    it.to_clients();
    it.obey(Stop{.epoch = 1});
    CHECK(it.to_clients() == Texts{"c1 stop"});
    it.at(10'000);
    CHECK(it.to_clients().empty());
    it.obey(Start{.epoch = 1});
    it.take_message(1, ack(1, "start"));
    it.up();
    it.obey(Stop{.epoch = 1});
    it.at(12'000);
    CHECK(it.to_clients() == Texts{"c1 start", "c1 stop", "c1 stop"});
    it.take_message(1, Report{.epoch = 1, .publisher = {}});
    it.take_message(1, Report{.epoch = 1, .publisher = {}});
    CHECK(it.up() == Texts{"report 1"});
    it.obey(Stop{.epoch = 1});
    CHECK(it.up() == Texts{"report 1"});
    it.at(20'000);
    CHECK(it.to_clients().empty());
}

TEST_CASE("a process with several clients gets a command once, with ids if it is not for all") {
    Group it(6);
    it.obey(Welcome{.ids = {}, .run = "run", .silence_s = 30});
    it.hello("a", {1, 2, 3});
    it.hello("b", {4, 5, 6});
    it.at(10);
    it.obey(Welcome{.ids = Group::all(6), .run = "run", .silence_s = 30});
    it.to_clients();
    it.configure(1, {1, 2, 3, 5});
    CHECK(it.to_clients() == Texts{"a configure", "b configure 5"});
    it.relaying.take_message("a", Ack{.ids = {1, 3}, .epoch = 1, .number = 1, .command = "configure"},
                             it.now_ns);
    it.at(2010);
    CHECK(it.to_clients() == Texts{"a configure 2", "b configure 5"});
    it.obey(Quit{.ids = {4}});
    CHECK(it.to_clients() == Texts{"b quit"});
}

// --- reports ----------------------------------------------------------------------------------------------

TEST_CASE("reports are sent when all have reported, or half a second after the first") {
    Group it(3);
    it.begin();
    it.configure(1);
    it.obey(Finish{.epoch = 1});
    it.up();
    it.reported("c3", {3});
    it.reported("c1", {1});
    it.reported("c1", {1});  // it answers a repeated command again
    it.at(499);
    CHECK(it.up().empty());
    it.at(500);
    CHECK(it.up() == Texts{"batch 1 3"});
    it.reported("c2", {2});
    CHECK(it.up() == Texts{"batch 2"});
    it.obey(Finish{.ids = {1, 3}, .epoch = 1});
    CHECK(it.up() == Texts{"batch 1 3"});
    CHECK(it.payloads.front() == it.payloads.back());
}

TEST_CASE("a report stays in its batch, even if its client is asked again") {
    Group it(2);
    it.begin();
    it.configure(1);
    it.obey(Finish{.epoch = 1});
    it.reported("c1", {1});
    it.reported("c2", {2});
    it.up();
    it.obey(Finish{.ids = {2}, .epoch = 1, .number = 5});
    it.reported("c2", {2});  // late
    CHECK(it.up().empty());
    it.reported("c2", {2}, 1, 5);
    it.reported("c2", {2}, 1, 5);  // it answers a repeated command again
    CHECK(it.up() == Texts{"batch 1 2"});
    CHECK(it.payloads.front() == it.payloads.back());
}

namespace {

// Three clients in one process, which have to report.
class PackedGroup : public Group {
  public:
    PackedGroup() : Group(3) {
        obey(Welcome{.ids = {}, .run = "run", .silence_s = 30});
        hello("a", {1, 2, 3});
        at(10);
        obey(Welcome{.ids = {1, 2, 3}, .run = "run", .silence_s = 30});
        configure(1);
        relaying.take_message("a", Ack{.ids = {1, 2, 3}, .epoch = 1, .number = 1, .command = "configure"},
                              now_ns);
        obey(Finish{.epoch = 1});
        to_clients();
        up();
    }
};

}  // namespace

TEST_CASE("reports of packed clients are one batch, by id") {
    PackedGroup it;
    it.reported("a", {1, 3});
    it.reported("a", {2});
    CHECK(it.up() == Texts{"batch 1 2 3"});
}

TEST_CASE("a batch is taken as a whole or not at all") {
    PackedGroup it;
    it.reported("a", {1, 3});
    it.reported("a", {1, 2});  // one of them is known: the sums of their histograms cannot be divided
    it.at(600);
    CHECK(it.up() == Texts{"batch 1 3"});
    it.at(2010);
    CHECK(it.to_clients() == Texts{"a finish 2"});
    it.reported("a", {2});
    CHECK(it.up() == Texts{"batch 2"});
}

TEST_CASE("a batch that is late for one of its clients is not taken") {
    PackedGroup it;
    it.obey(Finish{.ids = {2}, .epoch = 1, .number = 6});
    it.reported("a", {1, 2, 3});
    it.at(600);
    CHECK(it.up().empty());
    it.reported("a", {1, 3});
    it.reported("a", {2}, 1, 6);
    CHECK(it.up() == Texts{"batch 1 2 3"});
}

TEST_CASE("a batch whose columns do not fit together changes nothing") {
    PackedGroup it;
    const BatchHead head{.ids = {1, 2, 3}, .epoch = 1, .number = 4, .columns = {{"batches", 3}}};
    CHECK_THROWS_AS(it.relaying.take_batch("a", head, std::string(24, '\0'), it.now_ns), ProtocolError);
    it.reported("a", {1, 2, 3});
    CHECK(it.up() == Texts{"batch 1 2 3"});
}

TEST_CASE("a report may come after the end of its process, and counts once") {
    Group it(2);
    it.begin();
    it.configure(1);
    it.obey(Finish{.epoch = 1});
    it.reported("c1", {1});
    it.relaying.take_exit({.ids = {2}, .pid = 102, .status = -9, .replaced = true}, it.now_ns);
    it.hello("d2", {2}, 1);
    CHECK(it.up() == Texts{"child_exit 2", "batch 1"});
    it.reported("c2", {2});
    it.reported("c2", {2});
    it.relaying.end();
    CHECK(it.up() == Texts{"batch 2"});
}

TEST_CASE("an error may come after the end of its process") {
    Group it(2);
    it.begin();
    it.configure(1);
    it.relaying.take_exit({.ids = {2}, .pid = 102, .status = 3, .replaced = true}, it.now_ns);
    it.take_message(2, Error{.epoch = 1, .message = "no topic"});
    CHECK(it.up() == Texts{"child_exit 2", "error 'no topic' 2"});
}

TEST_CASE("a publisher's report may come after its end") {
    Group it(1, Role::publisher);
    it.begin();
    it.configure(1);
    it.relaying.take_exit({.ids = {1}, .pid = 101, .status = -9, .replaced = true}, it.now_ns);
    it.take_message(1, Report{.epoch = 1, .publisher = {}});
    it.take_message(1, Report{.epoch = 1, .publisher = {}});
    CHECK(it.up() == Texts{"child_exit 1", "report 1"});
}

TEST_CASE("another batch is begun before one would become too long") {
    Group it(300);
    it.begin();
    it.configure(1);
    it.obey(Finish{.epoch = 1});
    for (Id id = 1; id <= 300; ++id) {
        it.reported("c" + std::to_string(id), {id}, 1, number_of(Step::finish), report(256));
    }
    std::size_t batches = 0;
    for (const std::string& text : it.up()) {
        batches += text.starts_with("batch") ? 1 : 0;
    }
    CHECK(batches == 2);  // 4.4 kB each
    CHECK(it.payloads.size() == 2);
    CHECK(it.payloads.front().size() <= kBatchBytes);
    CHECK(it.payloads.front().size() > kBatchBytes - 50'000);
}

TEST_CASE("a drain that failed is answered with its error") {
    Group it(2);
    it.begin();
    it.configure(1);
    it.take_message(1, ack(1, "configure"));
    it.take_message(2, ack(1, "configure"));
    it.obey(Finish{.epoch = 1});
    it.up();
    it.reported("c1", {1});
    it.take_message(2, Error{.epoch = 1, .number = 4, .message = "no offsets"});
    CHECK(it.up() == Texts{"error 'no offsets' 2", "batch 1"});
    it.obey(Finish{.ids = {2}, .epoch = 1});
    CHECK(it.up() == Texts{"error 'no offsets' 2"});
}

TEST_CASE(
    "what clients tell of their seconds is added up, the cohort's apart, and told before their reports") {
    Group group(3);
    group.begin();
    group.configure(1, {1, 2});
    group.configure(1, {3}, false, true);
    group.up();
    for (const Id id : {1U, 2U, 3U}) {
        group.take_message(id, TimeSeries{.ids = {}, .epoch = 1, .seconds = {{.second = 0, .messages = id}}});
    }
    group.take_message(1, TimeSeries{.ids = {}, .epoch = 2, .seconds = {{.second = 0, .messages = 9}}});
    CHECK(group.up().empty());
    group.at(group.now_ns / kMillisecondNs + 600);
    CHECK(group.up() == Texts{"course 1 2 3", "course 1 2 3"});
    group.at(group.now_ns / kMillisecondNs + 5000);
    CHECK(group.up().empty());
}

TEST_CASE("an answer with the number of no command, or of another one, answers nothing") {
    Group it(1);
    it.begin();
    it.configure(1, {}, true);
    it.obey(Finish{.epoch = 1});
    it.to_clients();
    for (const std::uint32_t number : {4U, 99U}) {
        it.take_message(1, Ack{.epoch = 1, .number = number, .command = "configure"});
        it.take_message(1, Ready{.epoch = 1, .number = number});
    }
    it.reported("c1", {1}, 1, 1);
    it.at(2000);
    CHECK(it.up().empty());
    CHECK(it.to_clients() == Texts{"c1 configure", "c1 finish"});
}
