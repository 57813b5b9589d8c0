// The commands of an epoch to each client of a group, and missing answers. Pure: the times are given.
// (Python: hydra/client/relayed_replies.py.)
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

// Interval at which a command without an answer is resent.
inline constexpr std::int64_t kResendEveryNs = 2 * kSecondNs;

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

// A command of an epoch, without the clients that get it.
struct Command {
    Step step;
    std::uint32_t epoch;
    std::uint32_t number;
    std::string body;            // the message without ids
    bool ready_follows = false;  // of `configure`: a `ready` follows
    bool cohort = false;         // of `configure`: the clients belong to the cohort
};

// The clients of a command, by what they had before:
struct CommandTargets {
    Ids recipients;  // clients that get it
    Ids fresh;       // of these: their last command of this kind was not this one
    Ids answered;    // clients that have answered it before
};

class CommandReplies {
  public:
    CommandReplies(const Ids& ids, Role role) : role_(role), latest_(ids) {}

    [[nodiscard]] std::uint32_t epoch() const { return epoch_; }

    // Whether this command begins an epoch; then everything of the previous epoch has to be discarded.
    [[nodiscard]] bool begins(const Command& command) const;
    void begin(std::uint32_t epoch);

    // Records a command of this epoch to these clients. It is a repetition if a client's last command was the
    // same but for the ids.
    CommandTargets give(Command&& command, const Ids& clients, std::int64_t now_ns);

    // Records this client's answer to the command of this number. Returns whether the answer is new; one to
    // an earlier command of its kind does not count.
    bool answer(Id client, Step step, std::uint32_t number);
    // Whether the client had a later command of this kind, or none.
    [[nodiscard]] bool late(Id client, Step step, std::uint32_t number) const;

    [[nodiscard]] bool has_had(Id client, Step step) const { return of(client, step).command != nullptr; }
    [[nodiscard]] bool answered(Id client, Step step) const { return of(client, step).answered; }
    // Whether a client has not answered a command of this kind.
    [[nodiscard]] bool awaited(Step step) const { return unanswered_[at(step)] != 0; }

    // The client has ended: it will not answer, and the process that replaces it has had no command.
    void left(Id client);

    struct Resend {
        std::shared_ptr<const Command> command;
        Ids ids;
    };
    // The commands to resend now, each with its clients.
    std::vector<Resend> resends(std::int64_t now_ns);
    // When the next resend is due, or earlier; kNeverNs: all clients have answered everything.
    [[nodiscard]] std::int64_t due_ns() const;

  private:
    // One client's last command of a kind, and whether it has answered; an answered command is not resent.
    struct LatestCommand {
        std::shared_ptr<const Command> command;
        bool answered = false;
        std::int64_t resend_ns = kNeverNs;
    };

    [[nodiscard]] bool ignored(Id client, Step step) const;
    LatestCommand& of(Id client, Step step) { return latest_[client][at(step)]; }
    [[nodiscard]] const LatestCommand& of(Id client, Step step) const { return latest_[client][at(step)]; }

    Role role_;
    std::uint32_t epoch_ = 0;
    ByClient<std::array<LatestCommand, kSteps>> latest_;
    std::map<std::string, std::shared_ptr<const Command>>
        commands_;                                  // by body: equal commands are one object
    std::array<std::size_t, kSteps> unanswered_{};  // clients with a command and no answer
    std::int64_t resend_ns_ = kNeverNs;
};

}  // namespace hydra
