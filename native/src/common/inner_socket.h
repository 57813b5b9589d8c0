// A relay's end of the connections to its clients: a socket of the file system in a folder that nobody else
// may enter, and that is gone as soon as the parent has its descriptor.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/frames.h"

namespace hydra {

// The folder cannot be made; the text names it and says what to do.
struct FolderError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What a client of a group dials: the socket's file by a descriptor, as its name is gone.
std::string inner_path(int door);

// Opens the socket with this name for nothing but dialling (O_PATH), and removes it and its folder.
int take_door(const std::string& path);

class InnerSocket {
  public:
    // Throws FolderError.
    InnerSocket();
    ~InnerSocket();
    InnerSocket(const InnerSocket&) = delete;
    InnerSocket& operator=(const InnerSocket&) = delete;

    // The name of its socket.
    [[nodiscard]] const std::string& path() const { return path_; }

    struct Frame {
        std::string connection;
        std::string content;
    };

    // The next frame; never waits. None: nothing is left, and fd() becomes readable when there is.
    std::optional<Frame> receive();

    // Never waits: what a client does not read is kept for it. Whoever is gone gets nothing.
    void send(const std::string& connection, std::string_view frame);

    [[nodiscard]] int fd() const { return epoll_; }
    void stir() { stirred_ = true; }
    [[nodiscard]] bool stirred() const { return stirred_; }

  private:
    struct Connection {
        std::string name;
        int fd;
        FrameReader arrived{};
        std::string unsent{};
    };

    void accept_all();
    void read(Connection& connection, bool to_its_end);
    void write(Connection& connection);
    void watch(int fd, std::uint32_t events, int operation);
    void end(Connection& connection);

    std::string path_;
    int socket_;
    int epoll_;
    std::map<int, Connection> connections_;   // by descriptor
    std::map<std::string, int> descriptors_;  // by name
    std::uint64_t names_ = 0;
    std::deque<Frame> arrived_;
    bool freed_ = false;  // a descriptor, since all were let in
    bool stirred_ = true;
};

}  // namespace hydra
