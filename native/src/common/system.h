// The interface of a messaging system to this program: its options and its transports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/messages/parts.h"
#include "common/transport.h"

namespace CLI {
class App;
}

namespace zmq {
class context_t;
}

namespace hydra {

class System {
  public:
    virtual ~System() = default;

    [[nodiscard]] virtual std::string name() const = 0;

    // The name of its clients' implementation.
    [[nodiscard]] virtual std::string implementation() const { return "native"; }

    // Whether it has clients of this role.
    [[nodiscard]] virtual bool offers(Role role) const {
        static_cast<void>(role);
        return true;
    }

    // Versions of the libraries, for `hello`.
    [[nodiscard]] virtual std::map<std::string, std::string> versions() const = 0;

    // Whether its library was built with TLS.
    [[nodiscard]] virtual bool has_tls() const { return false; }

    // Adds the options that only this system has. They are set when the command line is parsed, and rejected
    // if another system was chosen.
    virtual void add_options(CLI::App& app) { static_cast<void>(app); }

    // Checks the options and the environment before anything is forked. Throws EnvironmentError.
    virtual void check(Role role) const { static_cast<void>(role); }

    // The number of libzmq's threads in the context of a client.
    [[nodiscard]] virtual int io_threads() const { return 1; }

    // How long a process with this many subscribers waits after an arrival, so it takes several
    // together; 0: not at all.
    [[nodiscard]] virtual std::int64_t gather_ns(std::size_t subscribers) const {
        static_cast<void>(subscribers);
        return 0;
    }

    // These two are called in the client's process, after the fork.
    [[nodiscard]] virtual std::unique_ptr<PublisherTransport> open_publisher(
        zmq::context_t& context) const = 0;
    [[nodiscard]] virtual std::unique_ptr<SubscriberTransport> open_subscriber(
        zmq::context_t& context) const = 0;
};

// One kind of client. The system outlives it.
struct Kind {
    const System* system = nullptr;
    Role role = Role::publisher;

    // The name on the command line, such as "zmq-sub".
    [[nodiscard]] std::string name() const {
        return system->name() + (role == Role::publisher ? "-pub" : "-sub");
    }
};

}  // namespace hydra
