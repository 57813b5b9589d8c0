// When a subscriber tries to connect, and what it reports of it. (Python:
// tests/client/test_subscriber_connection.py.)
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "common/local_limits.h"
#include "common/subscriber_connection.h"
#include "golden.h"

using namespace hydra;

namespace {

constexpr std::int64_t kAt = 5'000 * kSecondNs;  // the step's clock shows this at the reading 50 s
constexpr std::int64_t kDue = 50 * kSecondNs;

Connect connect_at(std::int64_t at_ns) {
    return {.clock = {.at_ns = kDue, .step_ns = kAt}, .at_ns = at_ns, .first = 3};
}

}  // namespace

TEST_CASE("the due time follows from the id, and times count from it") {
    Connect connect = connect_at(kAt);
    connect.rate = 100;
    SubscriberConnection it(connect, 4);
    CHECK(it.next_ns() == kDue + 10 * kMillisecondNs);
    it.begin(kDue + 12 * kMillisecondNs);
    it.succeed(kDue + 18 * kMillisecondNs,
               {.connected_ns = kDue + 15 * kMillisecondNs, .subscribed = true, .tcp_us = 100});
    CHECK(it.connected());
    CHECK(it.next_ns() == kNeverNs);
    it.receive(kDue + 30 * kMillisecondNs);
    it.receive(kDue + 40 * kMillisecondNs);
    const nlohmann::json expected = {{"due_ns", kAt + 10 * kMillisecondNs},
                                     {"attempts", 1},
                                     {"refused", 0},
                                     {"timed_out", 0},
                                     {"lag_us", 2000},
                                     {"connected_us", 5000},
                                     {"ready_us", 8000},
                                     {"first_us", 20'000},
                                     {"tcp_us", 100}};
    CHECK(it.report({}) == expected);
}

TEST_CASE("without a confirmation the first message shows that it is ready") {
    SubscriberConnection it(connect_at(kAt), 3);
    it.begin(kDue);
    it.succeed(kDue + kMillisecondNs, {});
    CHECK_FALSE(it.report({}).contains("ready_us"));
    it.receive(kDue + 9 * kMillisecondNs);
    CHECK(it.report({})["ready_us"] == 9000);
}

TEST_CASE("a first message after the time limit shows no readiness") {
    SubscriberConnection it(connect_at(kAt), 3);
    it.begin(kDue);
    it.succeed(kDue + kMillisecondNs, {});
    it.receive(kDue + 11 * kSecondNs);
    CHECK_FALSE(it.report({}).contains("ready_us"));
    CHECK(it.report({})["first_us"] == 11'000'000);
}

TEST_CASE("attempts end before the client gives up") {
    Connect connect = connect_at(kAt);
    connect.within_s = 7;
    SubscriberConnection it(connect, 3);
    CHECK(attempt_limit_ns(kDue, it.until_ns()) == SubscriberConnection::kAttemptNs);
    it.begin(kDue);
    it.fail(kDue + SubscriberConnection::kAttemptNs, "Connection refused");
    CHECK(it.next_ns() == 56 * kSecondNs);
    CHECK(attempt_limit_ns(56 * kSecondNs, it.until_ns()) == kSecondNs);
    it.begin(56 * kSecondNs);
    it.fail(56 * kSecondNs + 300 * kMillisecondNs, "Connection refused");
    CHECK(it.next_ns() == kNeverNs);
    const nlohmann::json report = it.report({});
    CHECK(report["attempts"] == 2);
    CHECK(report["timed_out"] == 1);
    CHECK(report["refused"] == 1);
    CHECK(report["refused_why"] == "Connection refused");
    CHECK_FALSE(report.contains("local"));
}

TEST_CASE("the limits of a host are those of Python clients") {
    const nlohmann::json cases = nlohmann::json::parse(content(golden("limits/limits.json")));
    for (const auto& [error, name] : cases["errors"].get<std::vector<std::pair<int, std::string>>>()) {
        CAPTURE(error);
        CHECK(hydra::local_limit(error) == name);
    }
    for (const auto& [text, name] : cases["texts"].get<std::vector<std::pair<std::string, std::string>>>()) {
        CAPTURE(text);
        CHECK(hydra::local_limit_in(text) == name);
    }
}

TEST_CASE("a limit of this host is no refusal") {
    SubscriberConnection it(connect_at(kAt), 3);
    it.begin(kDue);
    it.fail(kDue + kMillisecondNs, "Connect to ipv4#1.2.3.4:5 failed: Cannot assign requested address");
    it.begin(it.next_ns());
    it.fail(it.next_ns() + SubscriberConnection::kAttemptNs, "Too many open files in system");
    const nlohmann::json report = it.report({});
    CHECK(report["attempts"] == 2);
    CHECK(report["refused"] == 0);
    CHECK(report["timed_out"] == 0);
    CHECK(report["local"] == nlohmann::json{{"EADDRNOTAVAIL", 1}, {"ENFILE", 1}});
}

TEST_CASE("a library that connects in the background has failed if the subscriber was never ready") {
    SubscriberConnection it(connect_at(kAt), 3);
    it.begin(kDue);
    it.succeed(kDue + kMillisecondNs, {});
    CHECK_FALSE(it.report({}).contains("local"));
    CHECK(it.report({}, "ENFILE")["local"] == nlohmann::json{{"ENFILE", 1}});
    it.receive(kDue + kSecondNs);
    CHECK_FALSE(it.report({}, "ENFILE").contains("local"));
}

TEST_CASE("an attempt that has not ended when the client gives up has timed out") {
    SubscriberConnection it(connect_at(kAt), 3);
    it.give_up(true);
    CHECK(it.next_ns() == kNeverNs);
    CHECK(it.report({})["timed_out"] == 1);
    CHECK(it.report({})["attempts"] == 1);
}

TEST_CASE("a lost connection is opened at once and then every second") {
    SubscriberConnection it(connect_at(0), 3);
    CHECK(it.connected());
    it.lose(60 * kSecondNs);
    CHECK(it.next_ns() == 60 * kSecondNs);
    it.begin(60 * kSecondNs);
    it.fail(60 * kSecondNs + kMillisecondNs, "Connection refused");
    CHECK(it.next_ns() == 61 * kSecondNs + kMillisecondNs);
    it.begin(it.next_ns());
    it.succeed(61 * kSecondNs + 2 * kMillisecondNs, {.subscribed = true});
    const nlohmann::json report = it.report({{.lost_ns = 70 * kSecondNs, .back_ns = 0, .attempts = 4}});
    const nlohmann::json expected = {{kAt + 10 * kSecondNs, kAt + 11 * kSecondNs + 2 * kMillisecondNs, 2},
                                     {kAt + 20 * kSecondNs, 0, 4}};
    CHECK(report["disconnections"] == expected);
}
