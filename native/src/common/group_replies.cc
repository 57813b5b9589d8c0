#include "common/group_replies.h"

#include <algorithm>
#include <utility>

namespace hydra {
namespace {

constexpr std::array kStepWords = words(Step());

}  // namespace

std::optional<Step> step_of(std::string_view word) {
    const auto found = std::ranges::find(kStepWords, word);
    if (found == kStepWords.end()) {
        return std::nullopt;
    }
    return kAllSteps[static_cast<std::size_t>(found - kStepWords.begin())];
}

GroupReplies::GroupReplies(const Ids& ids, std::function<void(const FromClient&)> send)
    : send_(std::move(send)), of_(ids) {}

void GroupReplies::begin(std::uint32_t epoch) {
    send_errors();
    epoch_ = epoch;
    unready_ = 0;
    for (auto& acks : acks_) {
        acks.clear();
    }
    readies_.clear();
    known_complaints_.clear();
    std::ranges::fill(of_, Client());
}

void GroupReplies::ask(Id client, const Command& command) {
    Client& it = of_[client];
    if (command.step == Step::configure) {
        it.ready.reset();
        it.failed = false;
        it.cohort = command.cohort;
        await_no_longer(it);
        it.awaited = command.ready_follows;
        unready_ += it.awaited ? 1 : 0;
    }
    if (command.step == Step::stop) {
        it.report.reset();
    }
}

void GroupReplies::left(Id client) {
    Client& it = of_[client];
    await_no_longer(it);
    it = {.cohort = it.cohort, .report = it.report};
}

void GroupReplies::await_no_longer(Client& client) {
    unready_ -= client.awaited ? 1 : 0;
    client.awaited = false;
}

void GroupReplies::acknowledge(Id client, Step step, std::uint32_t number, std::int64_t now_ns) {
    acks_[at(step)].add(number, client, now_ns);
    acked_ns_[at(step)] = now_ns;
}

bool GroupReplies::prove(Id client, const Ready& ready, std::int64_t now_ns) {
    Client& it = of_[client];
    const Readiness proof{ready.number, ready.endpoint};
    if (it.ready == proof) {
        return false;
    }
    it.ready = proof;
    await_no_longer(it);
    readies_.add(proof, client, now_ns);
    return true;
}

void GroupReplies::complain(const Ids& clients, const Error& error, std::int64_t now_ns) {
    const Complaint complaint{error.epoch, error.number, error.message, error.fatal};
    const bool first = known_complaints_.insert(complaint).second;
    if (first) {
        send_(Error{.ids = clients,
                    .epoch = error.epoch,
                    .number = error.number,
                    .message = error.message,
                    .fatal = error.fatal});
    }
    for (const Id client : clients) {
        if (!first) {
            complaints_.add(complaint, client, now_ns);
        }
    }
}

void GroupReplies::fail(Id client, Step step, const Error& error) {
    of_[client].complaint = {error.epoch, error.number, error.message, error.fatal};
    if (step == Step::configure) {
        of_[client].failed = true;
        await_no_longer(of_[client]);
    }
}

void GroupReplies::repeat(Id client, const Command& command, std::int64_t now_ns) {
    const Client& it = of_[client];
    if (command.step == Step::configure && it.failed) {
        repeat_complaint(client, now_ns);
        return;
    }
    acknowledge(client, command.step, command.number, now_ns);
    if (command.step == Step::configure && it.ready) {
        readies_.add(*it.ready, client, now_ns);
    }
}

void GroupReplies::work(std::int64_t now_ns) {
    for (const Step step : kAllSteps) {
        if (now_ns >= acks_[at(step)].due_ns()) {
            send_acks(step);
        }
    }
    if (now_ns >= readies_.due_ns()) {
        send_readiness();
    }
    if (now_ns >= complaints_.due_ns()) {
        send_errors();
    }
}

std::int64_t GroupReplies::due_ns() const {
    std::int64_t due_ns = std::min(readies_.due_ns(), complaints_.due_ns());
    for (const auto& acks : acks_) {
        due_ns = std::min(due_ns, acks.due_ns());
    }
    return due_ns;
}

void GroupReplies::send_all() {
    for (const Step step : kAllSteps) {
        send_acks(step);
    }
    send_readiness();
    send_errors();
}

void GroupReplies::send_acks(Step step) {
    acks_[at(step)].flush([&](std::uint32_t number, Ids ids) {
        send_(Ack{.ids = std::move(ids),
                  .epoch = epoch_,
                  .number = number,
                  .command = kStepWords[at(step)],
                  .time_ns = acked_ns_[at(step)]});
    });
}

void GroupReplies::send_complete_readiness() {
    if (unready_ == 0) {
        send_readiness();
    }
}

void GroupReplies::send_readiness() {
    readies_.flush([&](const Readiness& proof, Ids ids) {
        const auto& [number, endpoint] = proof;
        send_(Ready{.ids = std::move(ids), .epoch = epoch_, .number = number, .endpoint = endpoint});
    });
}

void GroupReplies::send_errors() {
    complaints_.flush([&](const Complaint& complaint, Ids ids) {
        const auto& [epoch, number, message, fatal] = complaint;
        send_(Error{
            .ids = std::move(ids), .epoch = epoch, .number = number, .message = message, .fatal = fatal});
    });
}

}  // namespace hydra
