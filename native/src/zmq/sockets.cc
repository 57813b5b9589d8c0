#include "zmq/sockets.h"

#include "common/clock.h"
#include "common/environment.h"
#include "common/local_limits.h"

namespace hydra {
namespace {

constexpr std::int64_t kReleasedWithinNs = kSecondNs;
constexpr std::int64_t kLookEveryNs = kMillisecondNs;

std::string key(const char* name) {
    std::string text = variable(name);
    if (!is_key(text)) {
        throw EnvironmentError(
            std::string("--secure needs a CURVE key (40 characters of Z85) in the environment variable ") +
            name);
    }
    return text;
}

zmq::socket_t make_socket(zmq::context_t& context, zmq::socket_type type, std::int64_t deadline_ns) {
    while (true) {
        try {
            return zmq::socket_t(context, type);
        } catch (const zmq::error_t& e) {
            if (e.num() != EMFILE || monotonic_ns() >= deadline_ns) {
                throw;
            }
        }
        sleep_until_ns(monotonic_ns() + kLookEveryNs);
    }
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

void open_data_socket(zmq::socket_t& socket, zmq::context_t& context, zmq::socket_type type,
                      const ZmqOptions& options) {
    const std::int64_t limit_ns = socket ? kReleasedWithinNs : 0;
    socket.close();
    socket = make_socket(context, type, monotonic_ns() + limit_ns);
    socket.set(zmq::sockopt::linger, 0);
    if (options.sndbuf_bytes > 0) {
        socket.set(zmq::sockopt::sndbuf, options.sndbuf_bytes);
    }
    if (options.rcvbuf_bytes > 0) {
        socket.set(zmq::sockopt::rcvbuf, options.rcvbuf_bytes);
    }
}

TransportError no_data_socket(const zmq::error_t& error) {
    return TransportError("cannot make a data socket: " + kernel_words(error.num()));
}

}  // namespace hydra
