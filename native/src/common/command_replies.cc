#include "common/command_replies.h"

#include <algorithm>
#include <utility>

namespace hydra {

bool CommandReplies::begins(const Command& command) const {
    return command.step == Step::configure && (command.epoch > epoch_ || known_.empty());
}

void CommandReplies::begin(std::uint32_t epoch) {
    epoch_ = epoch;
    known_.clear();
    unanswered_.fill(0);
    again_ns_ = kNeverNs;
    std::ranges::fill(told_, std::array<Told, kSteps>{});
}

CommandTargets CommandReplies::give(Command&& command, const Ids& clients, std::int64_t now_ns) {
    const Step step = command.step;
    auto& known = known_[command.body];
    if (known == nullptr) {
        known = std::make_shared<const Command>(std::move(command));
    }
    CommandTargets given;
    for (const Id client : clients) {
        Told& told = of(client, step);
        if (unheeded(client, step)) {
            given.tell.push_back(client);
            continue;
        }
        if (told.command == known && told.answered) {
            given.answered.push_back(client);
            continue;
        }
        if (told.command != known) {
            given.fresh.push_back(client);
        }
        unanswered_[at(step)] += told.command == nullptr || told.answered ? 1 : 0;
        told.command = known;
        told.answered = false;
        told.again_ns = now_ns + kAgainNs;
        again_ns_ = std::min(again_ns_, told.again_ns);
        given.tell.push_back(client);
    }
    return given;
}

// Whether the client ignores the command. The relay forwards it, but never resends it: a late copy could be
// obeyed in another state.
bool CommandReplies::unheeded(Id client, Step step) const {
    const bool unstarted = step == Step::stop && !told(client, Step::start);
    if (role_ == Role::publisher && (step == Step::finish || unstarted)) {
        return true;
    }
    return step != Step::configure && !told(client, Step::configure);
}

bool CommandReplies::late(Id client, Step step, std::uint32_t number) const {
    const Told& told = of(client, step);
    return told.command == nullptr || told.command->number != number;
}

bool CommandReplies::answer(Id client, Step step, std::uint32_t number) {
    Told& told = of(client, step);
    if (told.answered || late(client, step, number)) {
        return false;
    }
    told.answered = true;
    --unanswered_[at(step)];
    return true;
}

void CommandReplies::left(Id client) {
    for (const Step step : kAllSteps) {
        Told& told = of(client, step);
        unanswered_[at(step)] -= told.command != nullptr && !told.answered ? 1 : 0;
        told = {};
    }
}

std::vector<CommandReplies::Again> CommandReplies::again(std::int64_t now_ns) {
    std::vector<Again> all;
    if (now_ns < again_ns_) {
        return all;
    }
    again_ns_ = kNeverNs;
    for (const Step step : kAllSteps) {
        if (!awaited(step)) {
            continue;
        }
        std::map<std::shared_ptr<const Command>, Ids> due;
        Id client = told_.first();
        for (auto& steps : told_) {
            Told& told = steps[at(step)];
            if (told.command != nullptr && !told.answered) {
                if (told.again_ns <= now_ns) {
                    told.again_ns = now_ns + kAgainNs;
                    due[told.command].push_back(client);
                }
                again_ns_ = std::min(again_ns_, told.again_ns);
            }
            ++client;
        }
        for (auto& [command, ids] : due) {
            all.push_back({command, std::move(ids)});
        }
    }
    return all;
}

std::int64_t CommandReplies::due_ns() const {
    return std::ranges::any_of(unanswered_, [](std::size_t clients) { return clients != 0; }) ? again_ns_
                                                                                              : kNeverNs;
}

}  // namespace hydra
