#include "common/inner_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "common/unix_address.h"

namespace hydra {
namespace {

constexpr std::size_t kStackBytes = 4096;  // on the stack, whose first page is in use anyway
constexpr std::size_t kMostKept = 4096;    // most capacity kept after sending

}  // namespace

InnerConnection::InnerConnection(const std::string& path)
    : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = unix_address(path);
    int failed = -1;
    do {
        failed = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    } while (failed != 0 && errno == EINTR);
    if (failed != 0) {
        const int error = errno;
        close(fd_);
        throw std::system_error(error, std::generic_category(), "the relay's socket");
    }
}

// All sent frames arrive, even if this process ends at once. The wait ends if the relay has ended.
InnerConnection::~InnerConnection() {
    waiter_ = nullptr;
    while (waits()) {
        pollfd room{fd_, POLLOUT, 0};
        poll(&room, 1, -1);
        flush();
    }
    close(fd_);
}

void InnerConnection::watch(Waiter* waiter, std::uint64_t token) {
    waiter_ = waiter;
    token_ = token;
    if (waiter_ != nullptr) {
        waiter_->add(fd_, token_);
        if (waits()) {
            waiter_->await_room(fd_, token_, true);
        }
    }
}

std::optional<std::string> InnerConnection::receive() {
    std::array<char, kStackBytes> bytes;
    if (waits()) {
        flush();
        if (!waits() && waiter_ != nullptr) {
            waiter_->await_room(fd_, token_, false);
        }
    }
    while (true) {
        if (auto frames = arrived_.take()) {
            return std::move(frames->first);
        }
        const ssize_t count = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return std::nullopt;  // if the relay has ended, the parent ends this process
        }
        arrived_.add({bytes.data(), static_cast<std::size_t>(count)});
    }
}

void InnerConnection::send(std::string_view frame, bool more) {
    const FrameLength length = frame_length(frame, more);
    const bool waited = waits();
    unsent_.append(length.data(), length.size()).append(frame);
    if (waited) {
        return;
    }
    flush();
    if (waits() && waiter_ != nullptr) {
        waiter_->await_room(fd_, token_, true);
    }
}

// Sends what the socket accepts; the rest is sent when the socket has space.
void InnerConnection::flush() {
    while (waits()) {
        const ssize_t count =
            ::send(fd_, unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno == EAGAIN) {
            return;
        }
        // If the relay has ended, the rest has no receiver.
        sent_ = count < 0 ? unsent_.size() : sent_ + static_cast<std::size_t>(count);
    }
    sent_ = 0;
    unsent_.clear();
    if (unsent_.capacity() > kMostKept) {
        unsent_.shrink_to_fit();  // after the reports of thousands of clients
    }
}

bool InnerConnection::readable() const {
    pollfd wait{fd_, POLLIN, 0};
    return poll(&wait, 1, 0) > 0;
}

}  // namespace hydra
