#include "common/client_process.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>

#include "common/clock.h"
#include "common/control_client.h"
#include "common/inner_connection.h"
#include "common/inner_socket.h"
#include "common/outer_connection.h"
#include "common/publisher.h"
#include "common/relay.h"
#include "common/subscriber.h"

namespace hydra {
namespace {

// With as many sockets as a process needs: thousands of contexts with libzmq's default of 1023 sockets each
// would take much memory. A closed socket keeps its place until libzmq has destroyed it, so each data socket
// has two places.
zmq::context_t make_context(const Options& options, std::size_t clients) {
    zmq::context_t context;
    context.set(zmq::ctxopt::io_threads, options.kind.system->io_threads());
    context.set(zmq::ctxopt::max_sockets, static_cast<int>(2 * clients + 6));
    return context;
}

enum class Answer { welcome, quit, none };

Answer await_welcome(ControlClient& control, double within_s) {
    pollfd wait{control.fd(), POLLIN, 0};
    const std::int64_t deadline = monotonic_ns() + to_ns(within_s);
    while (monotonic_ns() < deadline) {
        const std::int64_t hello_due_ns = control.introduce(monotonic_ns());
        while (const auto message = control.receive()) {
            if (std::holds_alternative<Welcome>(*message)) {
                return Answer::welcome;
            }
            if (std::holds_alternative<Quit>(*message)) {
                return Answer::quit;
            }
        }
        poll(&wait, 1, milliseconds_until(std::min(deadline, hello_due_ns)));
        control.stir();
    }
    return Answer::none;
}

// Runs the clients until they receive `quit`.
void serve(const Options& options, const Environment& environment, zmq::context_t& context,
           ControlClient& control) {
    const System& system = *options.kind.system;
    if (options.kind.role == Role::publisher) {
        const auto transport = system.open_publisher(context);
        Publisher(control, *transport, options.pacing, MemoryLimit(environment.memory_limit_bytes)).run();
        return;
    }
    const std::int64_t gather_ns = system.gather_ns(control.ids().size());
    Subscriber(control, gather_ns, [&] { return system.open_subscriber(context); }).run();
}

// The relay needs a descriptor for each client.
void open_as_many_files_as_allowed() {
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

}  // namespace

int run_clients(const Options& options, const Environment& environment, const std::string& relay,
                const Ids& ids, std::uint32_t incarnation, const std::function<void()>& welcomed) {
    zmq::context_t context = make_context(options, ids.size());
    InnerConnection connection(relay);
    ControlClient control(connection, {.ids = ids,
                                       .role = options.kind.role,
                                       .group = options.group,
                                       .incarnation = incarnation,
                                       .implementation = options.kind.system->implementation()});
    switch (await_welcome(control, environment.welcome_within_s)) {
        case Answer::quit:
            return kExitDismissed;
        case Answer::none:
            std::fprintf(stderr, "client %u: no welcome within %g s\n", ids.front(),
                         environment.welcome_within_s);
            return kExitStranded;
        case Answer::welcome:
            break;
    }
    welcomed();
    try {
        serve(options, environment, context, control);
        return kExitDismissed;
    } catch (const std::exception& e) {
        control.complain({.ids = ids, .message = e.what(), .fatal = true});
        std::fprintf(stderr, "client %u: %s\n", ids.front(), e.what());
        return kExitFailed;
    }
}

int run_relay(const Options& options, const Environment& environment, int place, int deaths, int kills) try {
    const std::int64_t begin_ns = monotonic_ns();
    open_as_many_files_as_allowed();
    Ids ids(options.count);
    std::iota(ids.begin(), ids.end(), options.first_id);
    zmq::context_t context = make_context(options, 0);
    InnerSocket inner;
    static_cast<void>(!write(place, inner.path().data(), inner.path().size()));
    close(place);
    OuterConnection connection(context, environment.credentials);
    ControlClient control(connection, {.ids = ids,
                                       .role = options.kind.role,
                                       .group = options.group,
                                       .incarnation = 0,
                                       .implementation = options.kind.system->implementation(),
                                       .versions = options.kind.system->versions()});
    Relay relay(control, inner, options.kind.role, deaths, kills);
    switch (relay.run(begin_ns + to_ns(environment.welcome_within_s))) {
        case RelayEnd::dismissed:
            return kExitDismissed;
        case RelayEnd::not_welcomed:
            std::fprintf(stderr, "no welcome from the controller at %s within %g s\n",
                         environment.credentials.endpoint.c_str(), environment.welcome_within_s);
            return kExitStranded;
        case RelayEnd::controller_silent:
            std::fprintf(stderr, "group %s: the controller has been silent for too long\n",
                         options.group.c_str());
            return kExitStranded;
        case RelayEnd::controller_ended:
            std::fprintf(stderr, "group %s: the controller has ended\n", options.group.c_str());
            return kExitStranded;
    }
    return kExitFailed;
} catch (const FolderError& e) {
    std::fprintf(stderr, "hydra-client: %s\n", e.what());
    return kExitUsage;
}

}  // namespace hydra
