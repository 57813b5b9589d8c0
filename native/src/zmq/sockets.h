// What the data sockets of both sides have in common.
#pragma once

#include <string>
#include <zmq.hpp>

#include "common/options.h"

namespace hydra {

// The keys of the data plane for --secure. The publishers' pair is made for the run; subscribers make their
// own.
struct DataKeys {
    std::string server_public;
    std::string server_secret;  // publishers only
};

// From HYDRA_DATA_SERVER_KEY and, for publishers, HYDRA_DATA_SERVER_SECRET. Throws EnvironmentError.
DataKeys read_data_keys(Role role);

// A data socket without linger and with the kernel's buffers as the options have them.
zmq::socket_t open_data_socket(zmq::context_t& context, zmq::socket_type type, const DataPlane& data);

}  // namespace hydra
