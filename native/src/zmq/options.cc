#include "zmq/options.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "common/whole_number.h"

namespace hydra {

void add_zmq_options(CLI::App& app, ZmqOptions& options) {
    constexpr std::uint64_t largest_int = INT32_MAX;
    app.add_option("--io-threads", options.io_threads, "libzmq's threads for input and output")
        ->check(whole_number(1, 64));
    app.add_option("--sndbuf", options.sndbuf_bytes, "bytes of the kernel's send buffer")
        ->check(whole_number(0, largest_int));
    app.add_option("--rcvbuf", options.rcvbuf_bytes, "bytes of the kernel's receive buffer")
        ->check(whole_number(0, largest_int));
    const auto set_transport = [&options](const std::string& transport) { options.ipc = transport == "ipc"; };
    app.add_option_function<std::string>("--transport", set_transport,
                                         "transport of the data messages: tcp or ipc (Unix socket)")
        ->check(CLI::IsMember(std::vector<std::string>{"tcp", "ipc"}));
    app.add_flag("--secure", options.secure,
                 "encrypt data messages with CURVE; see native/README.md for the keys");
}

}  // namespace hydra
