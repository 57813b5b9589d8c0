#include "common/inner_line.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "common/unix_address.h"

namespace hydra {
namespace {

constexpr std::size_t kReadBytes = 4096;  // on the stack: a page that is touched anyway

}  // namespace

InnerLine::InnerLine(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
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

InnerLine::~InnerLine() {
    close(fd_);
}

std::optional<std::string> InnerLine::receive() {
    std::array<char, kReadBytes> bytes;
    while (true) {
        if (auto frame = arrived_.take()) {
            return frame;
        }
        const ssize_t count = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return std::nullopt;  // where the relay is gone, the parent ends this process
        }
        arrived_.add({bytes.data(), static_cast<std::size_t>(count)});
    }
}

void InnerLine::send(std::string_view frame, bool) {
    FrameLength length = frame_length(frame);
    std::array<iovec, 2> parts{
        {{length.data(), length.size()}, {const_cast<char*>(frame.data()), frame.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    std::size_t left = length.size() + frame.size();
    while (left > 0) {
        const ssize_t count = sendmsg(fd_, &message, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return;
        }
        left -= static_cast<std::size_t>(count);
        auto sent = static_cast<std::size_t>(count);
        for (iovec& part : parts) {
            const std::size_t of_this = std::min(sent, part.iov_len);
            part.iov_base = static_cast<char*>(part.iov_base) + of_this;
            part.iov_len -= of_this;
            sent -= of_this;
        }
    }
}

bool InnerLine::readable() const {
    pollfd wait{fd_, POLLIN, 0};
    return poll(&wait, 1, 0) > 0;
}

}  // namespace hydra
