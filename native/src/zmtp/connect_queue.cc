#include "zmtp/connect_queue.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "zmtp/connection.h"

namespace hydra {
namespace {

// Publishers listen with a queue of 4096, and several processes may connect to the same publisher.
constexpr std::size_t kMostDialling = 256;

}  // namespace

void ConnectQueue::enter(ZmtpConnection& connection) {
    waiting_.push_back(&connection);
    dial_next();
}

Address ConnectQueue::source() {
    return source_for(address_, static_cast<std::uint32_t>(getpid()), dialled_++);
}

void ConnectQueue::leave(const ZmtpConnection& connection) {
    std::erase(waiting_, &connection);
    std::erase(answered_, &connection);
    subscribe_answered();
}

void ConnectQueue::subscribe(ZmtpConnection& connection) {
    answered_.push_back(&connection);
    subscribe_answered();
}

void ConnectQueue::subscribe_answered() {
    if (waiting_.empty()) {
        for (ZmtpConnection* const each : std::exchange(answered_, {})) {
            each->subscribe();
        }
    }
}

void ConnectQueue::settled() {
    --dialling_;
    dial_next();
}

// A connection that fails at once calls this function again.
void ConnectQueue::dial_next() {
    if (busy_) {
        return;
    }
    busy_ = true;
    while (dialling_ < kMostDialling && !waiting_.empty()) {
        ZmtpConnection* const next = waiting_.front();
        waiting_.pop_front();
        ++dialling_;
        next->dial();
    }
    busy_ = false;
    subscribe_answered();
}

}  // namespace hydra
