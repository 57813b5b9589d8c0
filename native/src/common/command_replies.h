// Which client of a group was told what in an epoch, and who has not answered. Pure: the times are given.
// (As hydra/client/relayed_replies.py.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/by_client.h"
#include "common/clock.h"
#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"

namespace hydra {

// How often something is said again that was not answered.
inline constexpr std::int64_t kAgainNs = 2 * kSecondNs;

inline constexpr std::size_t kSteps = words(Step()).size();
inline constexpr std::array<Step, kSteps> kAllSteps = [] {
    std::array<Step, kSteps> all{};
    for (std::size_t i = 0; i < kSteps; ++i) {
        all[i] = static_cast<Step>(i);
    }
    return all;
}();

constexpr std::size_t at(Step step) {
    return static_cast<std::size_t>(step);
}

// What an epoch asks of clients, whoever they are.
struct Command {
    Step step;
    std::uint32_t epoch;
    std::string body;            // the message without ids
    bool ready_follows = false;  // of configure
    bool cohort = false;         // likewise: they belong to it
};

// Those of the clients of a command that
struct CommandTargets {
    Ids tell;      // get it,
    Ids fresh;     // of these: had not been told it last,
    Ids changed;   // of these: had been told another one of its kind, whose answer may be on its way,
    Ids answered;  // and that have answered it before.
};

class CommandReplies {
  public:
    CommandReplies(const Ids& ids, Role role) : role_(role), told_(ids) {}

    [[nodiscard]] std::uint32_t epoch() const { return epoch_; }

    // Whether this command is the first of an epoch; then everything of the one before is to be forgotten.
    [[nodiscard]] bool begins(const Command& command) const;
    void begin(std::uint32_t epoch);

    // Takes note of a command of this epoch to these clients. Repeated is one that was told last, but for the
    // ids.
    CommandTargets give(Command&& command, const Ids& clients, std::int64_t now_ns);

    // This client's answer. Whether it was not known before; one that may answer the command before does not
    // count.
    bool answer(Id client, Step step);

    [[nodiscard]] bool told(Id client, Step step) const { return of(client, step).command != nullptr; }
    [[nodiscard]] bool answered(Id client, Step step) const { return of(client, step).answered; }
    // Whether somebody who was told has yet to answer.
    [[nodiscard]] bool awaited(Step step) const { return unanswered_[at(step)] != 0; }

    // Until the client has answered the ping of this number, which is said between two commands of a kind,
    // what comes answers the first of them.
    void deafen(Id client, Step step, std::int64_t ping) { of(client, step).deaf_until = ping; }
    void heard_ping(Id client, std::int64_t ping);
    [[nodiscard]] bool deaf(Id client, Step step) const { return of(client, step).deaf_until != 0; }

    // It is gone: nobody waits for it, and whoever replaces it has been told nothing.
    void left(Id client);

    struct Again {
        std::shared_ptr<const Command> command;
        Ids ids;
    };
    // What is to be said again now, and to whom.
    std::vector<Again> again(std::int64_t now_ns);
    // When that is next, or before; kNeverNs: everybody has answered everything.
    [[nodiscard]] std::int64_t due_ns() const;

  private:
    // What one client was told, and whether it has answered; in that case it is told no more.
    struct Told {
        std::shared_ptr<const Command> command;
        bool answered = false;
        std::int64_t again_ns = kNeverNs;
        std::int64_t deaf_until = 0;  // the ping; 0: none is awaited
    };

    [[nodiscard]] bool unheeded(Id client, Step step) const;
    Told& of(Id client, Step step) { return told_[client][at(step)]; }
    [[nodiscard]] const Told& of(Id client, Step step) const { return told_[client][at(step)]; }

    Role role_;
    std::uint32_t epoch_ = 0;
    ByClient<std::array<Told, kSteps>> told_;
    std::map<std::string, std::shared_ptr<const Command>> known_;  // by body: equal ones are one object
    std::array<std::size_t, kSteps> unanswered_{};                 // clients that were told and have not
    std::int64_t again_ns_ = kNeverNs;
};

}  // namespace hydra
