#include "zmq/sockets.h"

#include "common/environment.h"

namespace hydra {
namespace {

std::string key(const char* name) {
    std::string text = variable(name);
    if (!is_key(text)) {
        throw EnvironmentError(
            std::string("--secure needs a CURVE key (40 characters of Z85) in the environment variable ") +
            name);
    }
    return text;
}

}  // namespace

DataKeys read_data_keys(Role role) {
    DataKeys keys;
    keys.server_public = key("HYDRA_DATA_SERVER_KEY");
    if (role == Role::publisher) {
        keys.server_secret = key("HYDRA_DATA_SERVER_SECRET");
    }
    return keys;
}

zmq::socket_t open_data_socket(zmq::context_t& context, zmq::socket_type type, const DataPlane& data) {
    zmq::socket_t socket(context, type);
    socket.set(zmq::sockopt::linger, 0);
    if (data.sndbuf_bytes > 0) {
        socket.set(zmq::sockopt::sndbuf, data.sndbuf_bytes);
    }
    if (data.rcvbuf_bytes > 0) {
        socket.set(zmq::sockopt::rcvbuf, data.rcvbuf_bytes);
    }
    return socket;
}

}  // namespace hydra
