// The data sockets of publishers and subscribers.
#pragma once

#include <string>
#include <zmq.hpp>

#include "common/transport.h"
#include "zmq/options.h"

namespace hydra {

// The keys of the data connections for --secure. The publishers' pair is made for the run; subscribers make
// their own.
struct DataKeys {
    std::string server_public;
    std::string server_secret;  // publishers only
};

// From HYDRA_DATA_SERVER_KEY and, for publishers, HYDRA_DATA_SERVER_SECRET. Throws EnvironmentError.
DataKeys read_data_keys(Role role);

// Makes a data socket, without linger and with the options' kernel buffers, in place of the present one,
// which is closed first. libzmq releases the closed socket a little later, in threads of its own; if
// descriptors run out, this waits for it. Throws zmq::error_t.
void open_data_socket(zmq::socket_t& socket, zmq::context_t& context, zmq::socket_type type,
                      const ZmqOptions& options);

// The reason why there is no data socket, as a text for the user.
TransportError no_data_socket(const zmq::error_t& error);

}  // namespace hydra
