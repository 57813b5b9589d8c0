#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "common/clock.h"
#include "common/environment.h"
#include "common/inner_socket.h"
#include "common/waiter.h"

using namespace hydra;

namespace {

// TMPDIR for the life of a test.
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
    zmq::context_t context;
    try {
        InnerSocket inner(context);
        return "";
    } catch (const FolderError& e) {
        return e.what();
    }
}

}  // namespace

TEST_CASE("a client dials by a descriptor what has no name any more") {
    zmq::context_t context;
    InnerSocket inner(context);
    const auto folder = std::filesystem::path(inner.path()).parent_path();
    struct stat facts{};
    CHECK(stat(folder.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0700);
    const int door = take_door(inner.path());
    CHECK_FALSE(std::filesystem::exists(folder));
    zmq::socket_t client(context, zmq::socket_type::dealer);
    client.set(zmq::sockopt::routing_id, "me");
    client.connect(inner_endpoint(door));
    CHECK(client.send(zmq::str_buffer("hello"), zmq::send_flags::none));
    std::optional<InnerSocket::Frame> frame;
    Waiter waiter;
    waiter.add(inner.fd(), 0);
    const std::int64_t deadline_ns = monotonic_ns() + 10 * kSecondNs;
    while (!(frame = inner.receive()) && monotonic_ns() < deadline_ns) {
        waiter.wait(deadline_ns);
        inner.stir();
    }
    REQUIRE(frame);
    CHECK(frame->connection == "me");
    CHECK(frame->content.to_string_view() == "hello");
    inner.send("nobody", "nothing");
    inner.send("me", "welcome");
    zmq::message_t answer;
    CHECK(client.recv(answer));
    CHECK(answer.to_string_view() == "welcome");
    close(door);
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
        zmq::context_t context;
        const InnerSocket inner(context);
        CHECK(inner.path().starts_with("/tmp/hydra-"));
        CHECK(inner.path().size() < 80);
        close(take_door(inner.path()));
    }
    CHECK(std::filesystem::is_empty(far));
    std::filesystem::remove(far);
}
