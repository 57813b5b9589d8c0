// A relay's end of its clients' connections: a socket file in a folder that no other user may enter. The
// parent removes the file and the folder after it has opened a descriptor.
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

// The folder cannot be made; the text has its name and a remedy.
struct FolderError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The path to which a group's client connects: the socket's file by its descriptor, because its name was
// removed.
std::string inner_path(int place);

// Opens the socket file at this path only for connecting (O_PATH), and removes it and its folder.
int open_place(const std::string& path);

class InnerSocket {
  public:
    // Throws FolderError.
    InnerSocket();
    ~InnerSocket();
    InnerSocket(const InnerSocket&) = delete;
    InnerSocket& operator=(const InnerSocket&) = delete;

    // The path of its socket.
    [[nodiscard]] const std::string& path() const { return path_; }

    struct Message {
        std::string connection;
        Frames frames;
    };

    // The next message; never waits. None: nothing is left, and fd() becomes readable when a message arrives.
    std::optional<Message> receive();

    // Never waits: frames that a client does not read are kept for it. A frame for a disconnected client is
    // dropped.
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
    std::deque<Message> arrived_;
    bool freed_ = false;  // a descriptor was closed since all waiting clients were accepted
    bool stirred_ = true;
};

}  // namespace hydra
