// Options for the data connections of raw ZMQ.
#pragma once

namespace CLI {
class App;
}

namespace hydra {

struct ZmqOptions {
    int io_threads = 1;
    int sndbuf_bytes = 0;  // 0 leaves a size to the kernel
    int rcvbuf_bytes = 0;
    bool ipc = false;
    bool secure = false;
};

// Parsing the command line sets them, so they must exist until then.
void add_zmq_options(CLI::App& app, ZmqOptions& options);

}  // namespace hydra
