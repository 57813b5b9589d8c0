#include "common/warden.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "common/clock.h"
#include "common/host.h"
#include "common/member.h"

namespace hydra {
namespace {

// The host's counters, and in groups of publishers the threads of all that the parent has forked.
Watching::Reader reader(Role role) {
    const auto counters = std::make_shared<HostReader>();
    const auto threads = role == Role::publisher ? std::make_shared<ThreadReader>(getppid()) : nullptr;
    return [counters, threads](std::int64_t now_ns, bool host) {
        Sample it{.time_ns = now_ns};
        if (host) {
            it.host = counters->read();
        }
        if (threads) {
            it.threads = threads->busiest();
        }
        return it;
    };
}

int milliseconds_until(std::int64_t due_ns, std::int64_t now_ns) {
    return due_ns == kNeverNs
               ? -1
               : static_cast<int>(std::max<std::int64_t>(due_ns - now_ns, 0) / kMillisecondNs) + 1;
}

}  // namespace

Warden::Warden(Channel& channel, Role role, int deaths, int kills)
    : channel_(channel),
      deaths_(deaths),
      kills_(kills),
      watching_(
          channel.ids(), [role] { return reader(role); },
          [&channel](const Host& samples) { return channel.send_if_fits(samples); }) {}

int Warden::run() {
    while (true) {
        const std::int64_t now_ns = monotonic_ns();
        const std::int64_t hello_due_ns = channel_.introduce(now_ns);
        watching_.go_on(now_ns);
        while (const auto message = channel_.receive()) {
            obey(*message);
        }
        pollfd waits[] = {{channel_.fd(), POLLIN, 0}, {deaths_, POLLIN, 0}};
        poll(waits, 2, milliseconds_until(std::min(hello_due_ns, watching_.due_ns()), monotonic_ns()));
        channel_.stir();
        if (waits[1].revents != 0 && !take_death()) {
            return kExitDismissed;
        }
    }
}

void Warden::obey(const FromController& message) {
    if (const auto* quit = std::get_if<Quit>(&message)) {
        end_clients(*quit);
    } else if (const auto* watch = std::get_if<Watch>(&message)) {
        watching_.obey(*watch, monotonic_ns());
    }
}

// The parent kills what runs of them. Whoever asks for the end of those that are gone for good has not heard
// of it.
void Warden::end_clients(const Quit& quit) {
    if (quit.ids.empty()) {
        return;
    }
    const Ids ids = channel_.ours(quit.ids);
    for (const ChildExit& exit : gone_) {
        if (std::ranges::find_first_of(exit.ids, ids) != exit.ids.end()) {
            channel_.send(exit);
        }
    }
    for (const Id id : ids) {
        const Kill one{id, quit.incarnation.value_or(UINT32_MAX)};
        static_cast<void>(!write(kills_, &one, sizeof one));
    }
}

// False: the parent has closed the pipe.
bool Warden::take_death() {
    Death death{};
    if (read(deaths_, &death, sizeof death) != static_cast<ssize_t>(sizeof death)) {
        return false;
    }
    Ids dead(death.count);
    std::iota(dead.begin(), dead.end(), death.first_id);
    const ChildExit exit{.ids = dead,
                         .incarnation = death.incarnation,
                         .pid = death.pid,
                         .status = death.status,
                         .replaced = death.replaced};
    channel_.send(exit);
    if (!exit.replaced) {
        gone_.push_back(exit);
    }
    return true;
}

}  // namespace hydra
