#include "zmq/options.h"

#include <cstdint>
#include <string>

#include "common/system_options.h"

namespace hydra {

void add_zmq_options(CLI::App& app, ZmqOptions& options) {
    constexpr std::uint64_t largest_int = INT32_MAX;
    add_whole_number(app, "--io-threads", options.io_threads, "libzmq's threads for input and output", 1, 64);
    add_whole_number(app, "--sndbuf", options.sndbuf_bytes, "bytes of the kernel's send buffer", 0,
                     largest_int);
    add_whole_number(app, "--rcvbuf", options.rcvbuf_bytes, "bytes of the kernel's receive buffer", 0,
                     largest_int);
    const auto set_transport = [&options](const std::string& transport) { options.ipc = transport == "ipc"; };
    add_choice(app, "--transport", set_transport, "transport of the data messages: tcp or ipc (Unix socket)",
               {"tcp", "ipc"});
    add_flag(app, "--secure", options.secure,
             "encrypt data messages with CURVE; see native/README.md for the keys");
}

}  // namespace hydra
