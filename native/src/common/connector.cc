#include "common/connector.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "common/clock.h"
#include "common/subscriber_connection.h"

namespace hydra {
namespace {

void make(Connector::Attempt& attempt) {
    const std::int64_t now_ns = monotonic_ns();
    attempt.failed = true;
    if (now_ns < attempt.until_ns) {
        attempt.began_ns = now_ns;
        try {
            attempt.transport->connect(*attempt.command, attempt_limit_ns(now_ns, attempt.until_ns));
            attempt.failed = false;
        } catch (const std::exception& e) {
            attempt.why = e.what();  // the report counts it
        }
    }
    attempt.ended_ns = monotonic_ns();
    if (attempt.failed) {
        attempt.transport.reset();
    }
}

}  // namespace

struct Connector::State {
    State() : fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (fd < 0) {
            throw std::system_error(errno, std::generic_category(), "eventfd");
        }
    }
    ~State() { ::close(fd); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    // Makes connections until none waits.
    static void work(const std::shared_ptr<State>& state, Attempt attempt) {
        while (true) {
            make(attempt);
            const std::lock_guard lock(state->mutex);
            state->over.push_back(std::move(attempt));
            const std::uint64_t one = 1;
            static_cast<void>(!write(state->fd, &one, sizeof one));
            if (state->waiting.empty()) {
                --state->threads;
                return;
            }
            attempt = std::move(state->waiting.front());
            state->waiting.pop_front();
        }
    }

    int fd;
    std::mutex mutex;
    std::deque<Attempt> waiting;
    std::vector<Attempt> over;
    std::size_t threads = 0;
};

Connector::Connector() : state_(std::make_shared<State>()) {}

Connector::~Connector() {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.clear();
}

void Connector::start(Attempt attempt, std::size_t most) {
    const std::lock_guard lock(state_->mutex);
    if (state_->threads >= most) {
        state_->waiting.push_back(std::move(attempt));
        return;
    }
    ++state_->threads;
    std::thread(State::work, state_, std::move(attempt)).detach();
}

std::vector<Connector::Attempt> Connector::take() {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->over, {});
}

int Connector::fd() const {
    return state_->fd;
}

}  // namespace hydra
