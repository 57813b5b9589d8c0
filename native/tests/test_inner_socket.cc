#include <doctest/doctest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "common/clock.h"
#include "common/environment.h"
#include "common/inner_connection.h"
#include "common/inner_socket.h"
#include "common/waiter.h"

using namespace hydra;

namespace {

// Sets TMPDIR for the duration of a test.
class Within {
  public:
    explicit Within(const std::string& folder) : before_(variable("TMPDIR")) {
        setenv("TMPDIR", folder.c_str(), 1);
    }
    ~Within() { before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1); }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

  private:
    std::string before_;
};

std::string refusal() {
    try {
        InnerSocket inner;
        return "";
    } catch (const FolderError& e) {
        return e.what();
    }
}

}  // namespace

namespace {

constexpr std::int64_t kPatienceNs = 10 * kSecondNs;

// Waits for the next frame; none if it does not arrive in time.
std::optional<InnerSocket::Message> next(InnerSocket& inner) {
    std::optional<InnerSocket::Message> frame;
    const std::int64_t deadline_ns = monotonic_ns() + kPatienceNs;
    pollfd wait{inner.fd(), POLLIN, 0};
    while (!(frame = inner.receive()) && monotonic_ns() < deadline_ns) {
        poll(&wait, 1, milliseconds_until(deadline_ns));
        inner.stir();
    }
    return frame;
}

std::optional<std::string> next(InnerConnection& client) {
    std::optional<std::string> frame;
    const std::int64_t deadline_ns = monotonic_ns() + kPatienceNs;
    pollfd wait{client.fd(), POLLIN, 0};
    while (!(frame = client.receive()) && monotonic_ns() < deadline_ns) {
        poll(&wait, 1, milliseconds_until(deadline_ns));
    }
    return frame;
}

}  // namespace

TEST_CASE("a client dials by a descriptor what has no name any more") {
    InnerSocket inner;
    const auto folder = std::filesystem::path(inner.path()).parent_path();
    struct stat facts{};
    CHECK(stat(folder.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0700);
    const int place = open_place(inner.path());
    CHECK_FALSE(std::filesystem::exists(folder));
    InnerConnection client(inner_path(place));
    client.send("hello");
    const auto frame = next(inner);
    REQUIRE(frame);
    CHECK(frame->frames.first == "hello");
    CHECK_FALSE(inner.receive());
    inner.send("nobody", "nothing");
    inner.send(frame->connection, "welcome");
    CHECK(next(client) == "welcome");
    CHECK_FALSE(client.receive());
    close(place);
}

TEST_CASE("a client's messages before its end are received, and then nothing is sent to it") {
    InnerSocket inner;
    const int place = open_place(inner.path());
    {
        InnerConnection client(inner_path(place));
        client.send("first");
        client.send(std::string(100'000, 'x'));
    }
    const auto first = next(inner);
    REQUIRE(first);
    CHECK(first->frames.first == "first");
    const auto second = next(inner);
    REQUIRE(second);
    CHECK(second->frames.first.size() == 100'000);
    CHECK(second->connection == first->connection);
    inner.stir();
    CHECK_FALSE(inner.receive());
    inner.send(first->connection, "nobody is there");
    close(place);
}

TEST_CASE("a client that does not read gets everything when it does, and delays no other client") {
    InnerSocket inner;
    const int place = open_place(inner.path());
    InnerConnection busy(inner_path(place));
    InnerConnection other(inner_path(place));
    busy.send("busy");
    const auto its = next(inner);
    REQUIRE(its);
    const std::string large(400'000, 'x');  // more than a socket holds
    for (int i = 0; i < 5; ++i) {
        inner.send(its->connection, large);
    }
    other.send("other");
    const auto others = next(inner);
    REQUIRE(others);
    inner.send(others->connection, "welcome");
    CHECK(next(other) == "welcome");
    for (int i = 0; i < 5; ++i) {
        // Space is an event like an arrival: the relay continues to write when it looks for messages.
        std::optional<std::string> frame;
        const std::int64_t deadline_ns = monotonic_ns() + kPatienceNs;
        while (!(frame = busy.receive()) && monotonic_ns() < deadline_ns) {
            inner.stir();
            CHECK_FALSE(inner.receive());
        }
        REQUIRE(frame);
        CHECK(*frame == large);
    }
    close(place);
}

TEST_CASE("a client whose relay does not read does not wait, and notices space") {
    constexpr int kFrames = 2'000;  // several times what a socket holds
    InnerSocket inner;
    const int place = open_place(inner.path());
    Waiter waiter;
    InnerConnection client(inner_path(place));
    client.watch(&waiter, 7);
    for (int i = 0; i < kFrames; ++i) {
        client.send(std::to_string(i) + std::string(500, 'x'));
    }
    int received = 0;
    const std::int64_t deadline_ns = monotonic_ns() + kPatienceNs;
    while (received < kFrames && monotonic_ns() < deadline_ns) {
        inner.stir();
        while (const auto frame = inner.receive()) {
            CHECK(frame->frames.first == std::to_string(received++) + std::string(500, 'x'));
        }
        if (received < kFrames) {
            const auto wakes = waiter.wait(deadline_ns);
            REQUIRE(wakes.size() == 1);
            CHECK(wakes.front().token == 7);
            CHECK_FALSE(client.receive());
        }
    }
    CHECK(received == kFrames);
    // Nothing waits any more, so space is no event.
    client.send("last");
    const auto last = next(inner);
    REQUIRE(last);
    CHECK(last->frames.first == "last");
    CHECK(waiter.wait(0).empty());
    client.watch(nullptr, 0);
    close(place);
}

TEST_CASE("messages that a client had not sent when it ended arrive") {
    constexpr int kFrames = 20;
    constexpr std::size_t kBytes = 100'000;
    InnerSocket inner;
    const int place = open_place(inner.path());
    auto client = std::make_unique<InnerConnection>(inner_path(place));
    for (int i = 0; i < kFrames; ++i) {
        client->send(std::string(kBytes, 'x'));
    }
    std::thread end([&] { client.reset(); });
    int received = 0;
    while (received < kFrames && next(inner)) {
        ++received;
    }
    end.join();
    CHECK(received == kFrames);
    close(place);
}

TEST_CASE("a client whose relay has ended ends") {
    auto inner = std::make_unique<InnerSocket>();
    const int place = open_place(inner->path());
    auto client = std::make_unique<InnerConnection>(inner_path(place));
    client->send(std::string(2'000'000, 'x'));
    inner.reset();
    client.reset();
    CHECK(client == nullptr);
    close(place);
}

TEST_CASE("a folder that cannot be made is named") {
    const Within nowhere("/nonexistent/place");
    CHECK(refusal().find("/nonexistent/place") != std::string::npos);
    CHECK(refusal().find("TMPDIR") != std::string::npos);
}

TEST_CASE("a path that would be too long for a socket is not taken") {
    const std::filesystem::path far = "/tmp/hydra-test-" + std::to_string(getpid()) + std::string(80, 'x');
    std::filesystem::create_directory(far);
    {
        const Within it(far);
        const InnerSocket inner;
        CHECK(inner.path().starts_with("/tmp/hydra-"));
        CHECK(inner.path().size() < 80);
        close(open_place(inner.path()));
    }
    CHECK(std::filesystem::is_empty(far));
    std::filesystem::remove(far);
}
