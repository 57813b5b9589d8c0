#include "common/command_replies.h"

#include <algorithm>
#include <utility>

namespace hydra {

bool CommandReplies::begins(const Command& command) const {
    return command.step == Step::configure && (command.epoch > epoch_ || commands_.empty());
}

void CommandReplies::begin(std::uint32_t epoch) {
    epoch_ = epoch;
    commands_.clear();
    unanswered_.fill(0);
    resend_ns_ = kNeverNs;
    std::ranges::fill(latest_, std::array<LatestCommand, kSteps>{});
}

CommandTargets CommandReplies::give(Command&& command, const Ids& clients, std::int64_t now_ns) {
    const Step step = command.step;
    auto& known = commands_[command.body];
    if (known == nullptr) {
        known = std::make_shared<const Command>(std::move(command));
    }
    CommandTargets given;
    for (const Id client : clients) {
        LatestCommand& told = of(client, step);
        if (ignored(client, step)) {
            given.recipients.push_back(client);
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
        told.resend_ns = now_ns + kResendEveryNs;
        resend_ns_ = std::min(resend_ns_, told.resend_ns);
        given.recipients.push_back(client);
    }
    return given;
}

// Whether the client ignores the command. The relay forwards it, but never resends it: a late copy could be
// obeyed in another state.
bool CommandReplies::ignored(Id client, Step step) const {
    const bool unstarted = step == Step::stop && !has_had(client, Step::start);
    if (role_ == Role::publisher && (step == Step::finish || unstarted)) {
        return true;
    }
    return step != Step::configure && !has_had(client, Step::configure);
}

bool CommandReplies::late(Id client, Step step, std::uint32_t number) const {
    const LatestCommand& told = of(client, step);
    return told.command == nullptr || told.command->number != number;
}

bool CommandReplies::answer(Id client, Step step, std::uint32_t number) {
    LatestCommand& told = of(client, step);
    if (told.answered || late(client, step, number)) {
        return false;
    }
    told.answered = true;
    --unanswered_[at(step)];
    return true;
}

void CommandReplies::left(Id client) {
    for (const Step step : kAllSteps) {
        LatestCommand& told = of(client, step);
        unanswered_[at(step)] -= told.command != nullptr && !told.answered ? 1 : 0;
        told = {};
    }
}

std::vector<CommandReplies::Resend> CommandReplies::resends(std::int64_t now_ns) {
    std::vector<Resend> all;
    if (now_ns < resend_ns_) {
        return all;
    }
    resend_ns_ = kNeverNs;
    for (const Step step : kAllSteps) {
        if (!awaited(step)) {
            continue;
        }
        std::map<std::shared_ptr<const Command>, Ids> due;
        Id client = latest_.first();
        for (auto& steps : latest_) {
            LatestCommand& told = steps[at(step)];
            if (told.command != nullptr && !told.answered) {
                if (told.resend_ns <= now_ns) {
                    told.resend_ns = now_ns + kResendEveryNs;
                    due[told.command].push_back(client);
                }
                resend_ns_ = std::min(resend_ns_, told.resend_ns);
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
    return std::ranges::any_of(unanswered_, [](std::size_t clients) { return clients != 0; }) ? resend_ns_
                                                                                              : kNeverNs;
}

}  // namespace hydra
