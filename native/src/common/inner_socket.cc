#include "common/inner_socket.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "common/environment.h"
#include "common/messages/parts.h"

namespace hydra {
namespace {

// A socket's name has room for 107 bytes (sockaddr_un).
constexpr std::size_t kLongestPath = 80;
constexpr int kBacklog = 4096;
constexpr const char* kScheme = "ipc://";
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

// The name of a socket in a new folder.
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

std::string inner_endpoint(int door) {
    return kScheme + ("/proc/self/fd/" + std::to_string(door));
}

int take_door(const std::string& path) {
    const int door = open(path.c_str(), O_PATH | O_CLOEXEC);
    const int error = errno;
    unlink(path.c_str());
    rmdir(std::filesystem::path(path).parent_path().c_str());
    if (door < 0) {
        throw std::system_error(error, std::generic_category(), path);
    }
    return door;
}

InnerSocket::InnerSocket(zmq::context_t& context)
    : socket_(context, zmq::socket_type::router), path_(make_place()) {
    socket_.set(zmq::sockopt::sndhwm, 0);
    socket_.set(zmq::sockopt::rcvhwm, 0);
    socket_.set(zmq::sockopt::backlog, kBacklog);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::maxmsgsize, std::int64_t{2 * kMaxMessageBytes});
    socket_.bind(kScheme + path_);
}

std::optional<InnerSocket::Frame> InnerSocket::receive() {
    while (stirred_) {
        zmq::message_t connection;
        if (!socket_.recv(connection, zmq::recv_flags::dontwait)) {
            stirred_ = false;
            break;
        }
        Frame frame{.connection = connection.to_string(), .content = {}};
        static_cast<void>(socket_.recv(frame.content, zmq::recv_flags::dontwait));
        // One message is one frame: of more than one, nothing is believed.
        const bool whole = !frame.content.more();
        while (socket_.get(zmq::sockopt::rcvmore)) {
            zmq::message_t rest;
            static_cast<void>(socket_.recv(rest, zmq::recv_flags::dontwait));
        }
        if (whole) {
            return frame;
        }
    }
    return std::nullopt;
}

void InnerSocket::send(const std::string& connection, const std::string& frame) {
    stirred_ = true;
    if (socket_.send(zmq::buffer(connection), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) {
        static_cast<void>(socket_.send(zmq::buffer(frame), zmq::send_flags::dontwait));
    }
}

}  // namespace hydra
