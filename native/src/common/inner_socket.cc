#include "common/inner_socket.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/environment.h"
#include "common/unix_address.h"

namespace hydra {
namespace {

// The kernel's limit for a socket's path is 107 bytes (sockaddr_un).
constexpr std::size_t kLongestPath = 80;
constexpr int kBacklog = 4096;
constexpr std::size_t kReadBytes = 65536;
constexpr const char* kStandard = "/tmp";
constexpr const char* kPattern = "/hydra-XXXXXX";
constexpr const char* kName = "/s";

// A new folder with mode 0700.
std::string make_folder(const std::string& within) {
    std::string folder = within + kPattern;
    if (mkdtemp(folder.data()) == nullptr) {
        throw FolderError("no folder for the group's socket can be made in " + within + " (" +
                          std::generic_category().message(errno) +
                          "); set TMPDIR to one that can be written");
    }
    return folder;
}

// The path of a socket in a new folder.
std::string make_place() {
    const std::string given = variable("TMPDIR");
    std::string folder = make_folder(given.empty() ? kStandard : given);
    if (folder.size() + std::strlen(kName) > kLongestPath) {
        rmdir(folder.c_str());
        folder = make_folder(kStandard);
    }
    return folder + kName;
}

}  // namespace

std::string inner_path(int place) {
    return "/proc/self/fd/" + std::to_string(place);
}

int open_place(const std::string& path) {
    const int place = open(path.c_str(), O_PATH | O_CLOEXEC);
    const int error = errno;
    unlink(path.c_str());
    rmdir(std::filesystem::path(path).parent_path().c_str());
    if (place < 0) {
        throw std::system_error(error, std::generic_category(), path);
    }
    return place;
}

InnerSocket::InnerSocket()
    : path_(make_place()),
      socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    const sockaddr_un address = unix_address(path_);
    if (bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(socket_, kBacklog) != 0) {
        throw std::system_error(errno, std::generic_category(), path_);
    }
    watch(socket_, EPOLLIN, EPOLL_CTL_ADD);
}

InnerSocket::~InnerSocket() {
    for (const auto& [fd, connection] : connections_) {
        close(fd);
    }
    close(epoll_);
    close(socket_);
}

// Edge-triggered: a ready descriptor is read until nothing is left.
void InnerSocket::watch(int fd, std::uint32_t events, int operation) {
    epoll_event event{};
    event.events = events | EPOLLET;
    event.data.fd = fd;
    if (epoll_ctl(epoll_, operation, fd, &event) != 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
}

std::optional<InnerSocket::Message> InnerSocket::receive() {
    while (arrived_.empty() && stirred_) {
        std::array<epoll_event, 256> ready{};
        const int count = epoll_wait(epoll_, ready.data(), ready.size(), 0);
        stirred_ = count > 0;
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = ready[static_cast<std::size_t>(i)];
            if (event.data.fd == socket_) {
                accept_all();
                continue;
            }
            Connection& connection = connections_.at(event.data.fd);
            if ((event.events & EPOLLOUT) != 0) {
                write(connection);
                if (connection.unsent.empty()) {
                    watch(connection.fd, EPOLLIN, EPOLL_CTL_MOD);
                }
            }
            if ((event.events & ~EPOLLOUT) != 0) {
                read(connection, (event.events & EPOLLHUP) != 0);
            }
        }
        // A connection that could not be accepted, because no descriptor was free, is not reported again.
        if (std::exchange(freed_, false)) {
            accept_all();
        }
    }
    if (arrived_.empty()) {
        return std::nullopt;
    }
    Message message = std::move(arrived_.front());
    arrived_.pop_front();
    return message;
}

void InnerSocket::accept_all() {
    int fd = -1;
    while ((fd = accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        std::string name = std::to_string(++names_);
        descriptors_[name] = fd;
        connections_.emplace(fd, Connection{.name = std::move(name), .fd = fd});
        watch(fd, EPOLLIN, EPOLL_CTL_ADD);
    }
}

void InnerSocket::read(Connection& connection, bool to_its_end) {
    static std::array<char, kReadBytes> bytes;
    bool more = true;
    while (more) {
        const ssize_t count = recv(connection.fd, bytes.data(), bytes.size(), 0);
        if (count > 0) {
            connection.arrived.add({bytes.data(), static_cast<std::size_t>(count)});
            // A short read has left nothing; later data is another edge.
            more = to_its_end || static_cast<std::size_t>(count) == bytes.size();
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            end(connection);
            return;
        } else {
            more = errno == EINTR;
        }
        while (auto frames = connection.arrived.take()) {
            arrived_.push_back({connection.name, std::move(*frames)});
        }
        if (connection.arrived.broken()) {
            end(connection);
            return;
        }
    }
}

void InnerSocket::end(Connection& connection) {
    const int fd = connection.fd;
    descriptors_.erase(connection.name);
    connections_.erase(fd);
    close(fd);
    freed_ = true;
}

void InnerSocket::send(const std::string& name, std::string_view frame) {
    const auto found = descriptors_.find(name);
    if (found == descriptors_.end()) {
        return;
    }
    Connection& connection = connections_.at(found->second);
    const bool waits = !connection.unsent.empty();
    const FrameLength length = frame_length(frame);
    connection.unsent.append(length.data(), length.size()).append(frame);
    if (!waits) {
        write(connection);
        if (!connection.unsent.empty()) {
            watch(connection.fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
        }
    }
}

void InnerSocket::write(Connection& connection) {
    std::size_t sent = 0;
    while (sent < connection.unsent.size()) {
        const ssize_t count = ::send(connection.fd, connection.unsent.data() + sent,
                                     connection.unsent.size() - sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno != EAGAIN) {
            sent = connection.unsent.size();  // it has disconnected, which reading will show
            break;
        }
        if (count < 0) {
            break;
        }
        sent += static_cast<std::size_t>(count);
    }
    connection.unsent.erase(0, sent);
}

}  // namespace hydra
