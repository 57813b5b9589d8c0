// A relay's end of the connections to its clients: a socket of the file system in a folder that nobody else
// may enter, and that is gone as soon as the parent has its descriptor.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <zmq.hpp>

namespace hydra {

// The folder cannot be made; the text names it and says what to do.
struct FolderError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What a client of a group dials: the socket's file by a descriptor, as its name is gone.
std::string inner_endpoint(int door);

// Opens the socket with this name for nothing but dialling (O_PATH), and removes it and its folder.
int take_door(const std::string& path);

class InnerSocket {
  public:
    // Throws FolderError.
    explicit InnerSocket(zmq::context_t& context);

    // The name of its socket.
    [[nodiscard]] const std::string& path() const { return path_; }

    struct Frame {
        std::string connection;
        zmq::message_t content;
    };

    // The next message of one frame; never waits. None: nothing is left, and fd() becomes readable anew when
    // there is.
    std::optional<Frame> receive();

    // Never waits; whoever is gone gets nothing.
    void send(const std::string& connection, const std::string& frame);

    [[nodiscard]] int fd() { return socket_.get(zmq::sockopt::fd); }
    void stir() { stirred_ = true; }
    [[nodiscard]] bool stirred() const { return stirred_; }

  private:
    zmq::socket_t socket_;
    std::string path_;
    // Sending, too, takes note of what has arrived, without the descriptor becoming readable again.
    bool stirred_ = true;
};

}  // namespace hydra
