#include "common/member.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>

#include "common/channel.h"
#include "common/clock.h"
#include "common/publisher.h"
#include "common/subscriber.h"
#include "common/waiter.h"
#include "common/warden.h"

namespace hydra {
namespace {

// Sized for what a process has: thousands of contexts with libzmq's default of 1023 sockets each would be
// dear. A socket that is closed keeps its place until it is really gone, so there is room for every data
// socket twice.
zmq::context_t make_context(const Options& options, std::size_t clients) {
    zmq::context_t context;
    context.set(zmq::ctxopt::io_threads, options.kind.system->io_threads());
    context.set(zmq::ctxopt::max_sockets, static_cast<int>(2 * clients + 6));
    return context;
}

enum class Answer { welcome, quit, none };

Answer await_welcome(Channel& channel, double within_s) {
    Waiter waiter;
    waiter.add(channel.fd(), 0);
    const std::int64_t deadline = monotonic_ns() + to_ns(within_s);
    while (monotonic_ns() < deadline) {
        const std::int64_t hello_due_ns = channel.introduce(monotonic_ns());
        while (const auto message = channel.receive()) {
            if (std::holds_alternative<Welcome>(*message)) {
                return Answer::welcome;
            }
            if (std::holds_alternative<Quit>(*message)) {
                return Answer::quit;
            }
        }
        waiter.wait(std::min(deadline, hello_due_ns));
        channel.stir();
    }
    return Answer::none;
}

bool serve(const Options& options, const Environment& environment, zmq::context_t& context,
           Channel& channel) {
    const System& system = *options.kind.system;
    if (options.kind.role == Role::publisher) {
        const auto transport = system.open_publisher(context);
        return Publisher(channel, *transport, options.pacing, MemoryLimit(environment.memory_limit_bytes))
            .run();
    }
    return Subscriber(channel, [&] { return system.open_subscriber(context); }).run();
}

}  // namespace

int run_clients(const Options& options, const Environment& environment, const Ids& ids,
                std::uint32_t incarnation, const std::function<void()>& welcomed) {
    zmq::context_t context = make_context(options, ids.size());
    Channel channel(context, environment.credentials,
                    {.ids = ids,
                     .role = options.kind.role,
                     .group = options.group,
                     .warden = false,
                     .incarnation = incarnation,
                     .versions = options.kind.system->versions()});
    switch (await_welcome(channel, environment.welcome_within_s)) {
        case Answer::quit:
            return kExitDismissed;
        case Answer::none:
            std::fprintf(stderr, "no welcome from the controller at %s within %g s\n",
                         environment.credentials.endpoint.c_str(), environment.welcome_within_s);
            return kExitStranded;
        case Answer::welcome:
            break;
    }
    welcomed();
    try {
        return serve(options, environment, context, channel) ? kExitDismissed : kExitStranded;
    } catch (const std::exception& e) {
        channel.complain(ids, 0, e.what(), true);
        std::fprintf(stderr, "client %u: %s\n", ids.front(), e.what());
        return kExitFailed;
    }
}

int run_warden(const Options& options, const Environment& environment, int deaths, int kills) {
    Ids ids(options.count);
    std::iota(ids.begin(), ids.end(), options.first_id);
    zmq::context_t context = make_context(options, 0);
    Channel channel(context, environment.credentials,
                    {.ids = ids,
                     .role = options.kind.role,
                     .group = options.group,
                     .warden = true,
                     .incarnation = 0,
                     .versions = {}});
    return Warden(channel, options.kind.role, deaths, kills).run();
}

}  // namespace hydra
