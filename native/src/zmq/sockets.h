// What the data sockets of both sides have in common.
#pragma once

#include <string>
#include <zmq.hpp>

#include "common/transport.h"
#include "zmq/options.h"

namespace hydra {

// The keys of the data plane for --secure. The publishers' pair is made for the run; subscribers make their
// own.
struct DataKeys {
    std::string server_public;
    std::string server_secret;  // publishers only
};

// From HYDRA_DATA_SERVER_KEY and, for publishers, HYDRA_DATA_SERVER_SECRET. Throws EnvironmentError.
DataKeys read_data_keys(Role role);

// Makes a data socket, without linger and with the kernel's buffers as the options have them, in place of the
// one that is there, which is closed first. libzmq releases that a little later, in threads of its own: then
// this waits for it rather than run out of descriptors. Throws zmq::error_t.
void open_data_socket(zmq::socket_t& socket, zmq::context_t& context, zmq::socket_type type,
                      const ZmqOptions& options);

// Why there is no data socket, as a text for the user.
TransportError no_data_socket(const zmq::error_t& error);

}  // namespace hydra
