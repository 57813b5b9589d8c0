#include "common/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/host_counters.h"
#include "common/kernel_files.h"
#include "common/protocol.h"
#include "common/tcp_sampler.h"

namespace hydra {
namespace {

constexpr int kLastMessagesMs = 20;
constexpr int kMessagesAtATime = 1000;  // from one side, before the other side is read

// Most processes that are read in a group of subscribers, because thousands of them do the same.
constexpr std::size_t kSome = 32;

// Reads the samples of a group: the processes that the parent has forked, and the host's counters.
struct Readers {
    explicit Readers(Role role)
        : threads(getppid(), role == Role::subscriber ? kSome : std::numeric_limits<std::size_t>::max()) {}

    HostSampler counters;
    ThreadSampler threads;
    TcpSampler connections;

    Sample read(std::int64_t now_ns, bool host) {
        Sample it{.time_ns = now_ns, .host = {}, .threads = threads.busiest(), .connections = {}};
        if (host) {
            it.host = counters.read();
        }
        std::vector<pid_t> processes = threads.processes();
        // Without this process, which has the connection to the controller.
        std::erase(processes, getpid());
        it.connections = connections.read(processes);
        return it;
    }
};

WatchSchedule::Reader reader(Role role) {
    return [readers = std::make_shared<Readers>(role)](std::int64_t now_ns, bool host) {
        return readers->read(now_ns, host);
    };
}

}  // namespace

Relay::Relay(ControlClient& control, InnerSocket& inner, Role role, int deaths, int kills)
    : control_(control),
      inner_(inner),
      deaths_(deaths),
      kills_(kills),
      relaying_(control.ids(), role, *this),
      watching_(
          control.ids(), [role] { return reader(role); },
          [&control](const HostReadings& samples) { return control.send_if_fits(samples); }) {
    fcntl(kills, F_SETFL, O_NONBLOCK);
}

RelayEnd Relay::run(std::int64_t welcome_by_ns) {
    ControllerLiveness& controller = *control_.liveness();
    std::array<pollfd, 5> waits{{{control_.fd(), POLLIN, 0},
                                 {inner_.fd(), POLLIN, 0},
                                 {deaths_, POLLIN, 0},
                                 {kills_, POLLOUT, 0},
                                 {controller.fd(), POLLIN, 0}}};
    while (true) {
        const std::int64_t now_ns = monotonic_ns();
        const std::int64_t hello_due_ns = control_.introduce(now_ns);
        const bool awaits_welcome = !relaying_.welcomed() && !relaying_.dismissed();
        if (awaits_welcome && now_ns >= welcome_by_ns) {
            return RelayEnd::not_welcomed;
        }
        if (control_.silent(now_ns)) {
            return RelayEnd::controller_silent;
        }
        if (controller.controller_ended()) {
            return RelayEnd::controller_ended;
        }
        watching_.work(now_ns);
        take_from_controller();
        take_from_clients();
        relaying_.work(monotonic_ns());
        write_kills();
        const bool at_once = control_.stirred() || inner_.stirred();
        const std::int64_t due_ns =
            std::min({hello_due_ns, awaits_welcome ? welcome_by_ns : kNeverNs, watching_.due_ns(),
                      relaying_.due_ns(), control_.silent_at_ns(), controller.due_ns()});
        waits[3].fd = unwritten_.empty() ? -1 : kills_;
        poll(waits.data(), waits.size(), at_once ? 0 : milliseconds_until(due_ns));
        control_.stir();
        inner_.stir();
        if (waits[2].revents != 0 && !take_deaths()) {
            take_last_messages();
            relaying_.end();
            return RelayEnd::dismissed;
        }
    }
}

void Relay::take_from_controller() {
    for (int i = 0; i < kMessagesAtATime; ++i) {
        const auto message = control_.receive();
        if (!message) {
            return;
        }
        if (const auto* watch = std::get_if<Watch>(&*message)) {
            watching_.obey(*watch, monotonic_ns());
        } else if (const auto* look = std::get_if<Look>(&*message)) {
            const KernelTexts texts = kernel_texts(*look, control_.ids(), monotonic_ns());
            if (!control_.send_if_fits(texts)) {  // control characters need six bytes each
                control_.send(KernelTexts{
                    .ids = texts.ids, .number = texts.number, .time_ns = texts.time_ns, .complete = false});
            }
        } else if (const auto* ping = std::get_if<Ping>(&*message)) {
            if (ping->reply) {
                control_.answer(*ping);
            }
        } else {
            relaying_.obey(*message, control_.last_frame(), monotonic_ns());
        }
    }
}

void Relay::take_from_clients() {
    for (int i = 0; i < kMessagesAtATime; ++i) {
        auto arrived = inner_.receive();
        if (!arrived) {
            return;
        }
        try {
            auto& [first, second] = arrived->frames;
            FromClient message = decode_from_client(first);
            const auto* head = std::get_if<BatchHead>(&message);
            if (head != nullptr && second) {
                relaying_.take_batch(arrived->connection, *head, std::move(*second), monotonic_ns());
            } else if (head == nullptr && !second) {
                relaying_.take_message(arrived->connection, std::move(message), monotonic_ns());
            }
        } catch (const ProtocolError&) {
            continue;
        }
    }
}

// All clients have ended; their last messages may still arrive for a moment.
void Relay::take_last_messages() {
    pollfd wait{inner_.fd(), POLLIN, 0};
    do {
        inner_.stir();
        while (inner_.stirred()) {
            take_from_clients();
        }
    } while (poll(&wait, 1, kLastMessagesMs) > 0);
}

// Takes the ends of clients from the parent's pipe; false if the parent has closed it.
bool Relay::take_deaths() {
    // All messages that the clients sent before they ended.
    do {
        take_from_clients();
    } while (inner_.stirred());
    std::array<Death, 128> deaths{};
    const ssize_t bytes = read(deaths_, deaths.data(), sizeof deaths);
    if (bytes <= 0) {
        return false;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(bytes) / sizeof(Death); ++i) {
        const Death& death = deaths[i];
        Ids dead(death.count);
        std::iota(dead.begin(), dead.end(), death.first_id);
        relaying_.take_exit({.ids = dead,
                             .incarnation = death.incarnation,
                             .pid = death.pid,
                             .status = death.status,
                             .replaced = death.replaced},
                            monotonic_ns());
    }
    return true;
}

void Relay::to_client(const std::string& connection, const std::string& frame) {
    inner_.send(connection, frame);
}

void Relay::to_controller(const FromClient& message) {
    control_.send(message);
}

void Relay::to_controller(const BatchHead& head, const std::string& payload) {
    control_.send(head, payload);
}

void Relay::kill(const Ids& ids, std::uint32_t incarnation) {
    for (const Id id : ids) {
        unwritten_.push_back({id, incarnation});
    }
    write_kills();
}

// Never waits: the parent may be waiting until the relay reads deaths.
void Relay::write_kills() {
    const auto written = std::ranges::find_if(unwritten_, [this](const Kill& one) {
        return write(kills_, &one, sizeof one) != static_cast<ssize_t>(sizeof one);
    });
    unwritten_.erase(unwritten_.begin(), written);
}

}  // namespace hydra
