#include "zmtp/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/local_limits.h"
#include "common/transport.h"

namespace hydra {
namespace {

// As in libzmq: the wait between two tries, and the time limit for the other end's READY.
constexpr std::int64_t kRetryNs = 100 * kMillisecondNs;
constexpr std::int64_t kReadyWithinNs = 30 * kSecondNs;
constexpr std::size_t kMostUnsent = 64 * 1024;

// Whether the error is this host's, not the other end's.
bool is_local(int error) {
    return error == EACCES || error == EPERM || !local_limit(error).empty();
}

}  // namespace

void ZmtpConnection::open() {
    close();
    fd_ = socket(to_.address().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) {
        const int error = errno;
        set_due(monotonic_ns() + kRetryNs);
        throw TransportError("cannot make a data socket: " + kernel_words(error));
    }
    if (rcvbuf_bytes_ > 0) {
        setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &rcvbuf_bytes_, sizeof rcvbuf_bytes_);
    }
    state_ = State::waiting;
    to_.enter(*this);
}

void ZmtpConnection::dial() {
    state_ = State::dialling;
    set_due(monotonic_ns() + kReadyWithinNs);
    if (const Address from = to_.source(); from.size > 0) {
        // The port is chosen on connecting, and needs to be free for this destination only. If binding fails,
        // the kernel chooses both.
        const int on = 1;
        setsockopt(fd_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        static_cast<void>(bind(fd_, from.get(), from.size));
    }
    if (connect(fd_, to_.address().get(), to_.address().size) != 0 && errno != EINPROGRESS) {
        failed_ = is_local(errno) ? errno : 0;
        lose();
        return;
    }
    if (to_.address().family() != AF_UNIX) {
        const int on = 1;
        setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    if (waiter_ != nullptr) {
        waiter_->add_connecting(fd_, token_);
    }
    // These can be sent without an answer; the subscription needs READY first.
    unsent_.assign(greeting().data(), greeting().size());
    send(ready_command());
}

void ZmtpConnection::set_due(std::int64_t at_ns) {
    due_ns_ = at_ns;
    to_.tend_by(at_ns);
}

void ZmtpConnection::close() {
    if (state_ == State::waiting || (state_ == State::open && !subscribed_)) {
        to_.leave(*this);
    }
    subscribed_ = false;
    const bool dialled = state_ == State::dialling;
    state_ = State::closed;
    due_ns_ = kNeverNs;
    ended_ = false;
    unsent_.clear();
    decoder_ = ZmtpDecoder(topics_.prefix_bytes);
    if (fd_ >= 0) {
        ::close(fd_);  // this also removes it from every epoll
        fd_ = -1;
    }
    if (dialled) {
        to_.settled();
    }
}

// The connection cannot be used any more; a new one is made after a while, at different times for different
// clients.
void ZmtpConnection::lose() {
    lost_ += state_ == State::open ? 1 : 0;
    const int fd = fd_;
    close();
    set_due(monotonic_ns() + kRetryNs + fd % 100 * kMillisecondNs);
}

void ZmtpConnection::watch(Waiter* waiter, std::uint64_t token) {
    const bool dialled = state_ == State::dialling || state_ == State::open;
    if (waiter_ != nullptr && dialled) {
        waiter_->remove(fd_);
    }
    waiter_ = waiter;
    token_ = token;
    if (waiter_ != nullptr && dialled) {
        waiter_->add_connecting(fd_, token_);
    }
}

void ZmtpConnection::tend(std::int64_t now_ns) {
    if (failed_ != 0) {
        const int error = std::exchange(failed_, 0);
        throw TransportError("cannot connect to '" + to_.endpoint() + "': " + kernel_words(error));
    }
    if (now_ns < due_ns_) {
        return;
    }
    if (state_ == State::closed) {
        open();
    } else {
        lose();  // the other end has not answered
    }
}

bool ZmtpConnection::read(Batch& batch, std::span<char> buffer) {
    if (state_ != State::dialling && state_ != State::open) {
        return false;
    }
    if (!unsent_.empty()) {
        flush();
    }
    const std::size_t most = std::min(buffer.size(), ZmtpDecoder::most_bytes(batch.room()));
    const ssize_t count = recv(fd_, buffer.data(), most, 0);
    if (count <= 0) {
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            return errno == EINTR;
        }
        lose();
        return false;
    }
    try {
        decoder_.take({buffer.data(), static_cast<std::size_t>(count)}, batch, *this);
    } catch (const ZmtpError& e) {
        if (state_ != State::open) {
            lose();
            throw TransportError("no publisher for this subscriber at '" + to_.endpoint() + "': " + e.what());
        }
        ++refused_;
        lose();
        return false;
    }
    // A shorter read than requested has read everything, except for an end that was reported before it.
    return ended_ || static_cast<std::size_t>(count) == most;
}

void ZmtpConnection::opened() {
    state_ = State::open;
    due_ns_ = kNeverNs;
    to_.settled();
    to_.subscribe(*this);
}

void ZmtpConnection::subscribe() {
    subscribed_ = true;
    send(topics_.frames);
}

void ZmtpConnection::pinged(std::string_view context) {
    send(pong_command(context));
}

void ZmtpConnection::send(std::string_view bytes) {
    unsent_ += bytes;
    flush();
}

// The rest is sent when the socket can take it. Reading will show an error.
void ZmtpConnection::flush() {
    const ssize_t count = ::send(fd_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (count > 0) {
        unsent_.erase(0, static_cast<std::size_t>(count));
    }
    if (unsent_.empty()) {
        unsent_.shrink_to_fit();
    } else if (unsent_.size() > kMostUnsent + topics_.frames.size()) {
        unsent_.clear();
        ended_ = true;
        shutdown(fd_, SHUT_RDWR);  // the other end sends pings but reads nothing
    }
}

}  // namespace hydra
