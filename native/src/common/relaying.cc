#include "common/relaying.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "common/protocol.h"

namespace hydra {
namespace {

constexpr std::int64_t kAgainNs = 2 * kSecondNs;
constexpr std::int64_t kReportsWaitNs = 500 * kMillisecondNs;
// Far below what fits into a message, whatever their processes' numbers are.
constexpr std::size_t kJoinedOfMessage = 10'000;
constexpr std::array<Step, kSteps> kAllSteps = {Step::configure, Step::start, Step::stop, Step::finish};
constexpr std::array<const char*, kSteps> kStepWords = {"configure", "start", "stop", "finish"};

constexpr std::size_t at(Step step) {
    return static_cast<std::size_t>(step);
}

}  // namespace

Relaying::Relaying(Ids ids, Role role, RelayEnds& ends)
    : ids_(std::move(ids)), role_(role), ends_(ends), clients_(ids_.size()) {}

// --- what the controller says -----------------------------------------------------------------------------

void Relaying::obey(const FromController& message, std::string_view frame, std::int64_t now_ns) {
    std::visit(
        [&](const auto& it) {
            using Message = std::decay_t<decltype(it)>;
            if constexpr (std::is_same_v<Message, Configure>) {
                const bool ready_follows = role_ == Role::publisher || it.probe;
                obey(it.ids, {Step::configure, it.epoch, without_ids(frame), ready_follows, it.cohort},
                     now_ns);
            } else if constexpr (std::is_same_v<Message, Start>) {
                obey(it.ids, {Step::start, it.epoch, without_ids(frame)}, now_ns);
            } else if constexpr (std::is_same_v<Message, Stop>) {
                obey(it.ids, {Step::stop, it.epoch, without_ids(frame)}, now_ns);
            } else if constexpr (std::is_same_v<Message, Finish>) {
                obey(it.ids, {Step::finish, it.epoch, without_ids(frame)}, now_ns);
            } else if constexpr (std::is_same_v<Message, Welcome> || std::is_same_v<Message, Quit>) {
                obey(it, now_ns);
            } else if constexpr (std::is_same_v<Message, Evict>) {
                obey(it);
            }
        },
        message);
}

// The first one is the relay's own: now its clients are welcome, and the controller hears of them.
void Relaying::obey(const Welcome& it, std::int64_t now_ns) {
    if (!welcome_) {
        welcome_ = it;
        for (const auto& [connection, process] : processes_) {
            welcome(*process);
        }
        announce_ns_ = now_ns;
    }
    for (const Id id : it.ids) {
        if (!ours(id)) {
            continue;
        }
        Client& it = client(id);
        it.known = it.known || it.announced >= it.named_from;
        it.unwelcomed -= it.unwelcomed > 0 ? 1 : 0;
    }
}

void Relaying::obey(const Quit& quit, std::int64_t now_ns) {
    dismissed_ = dismissed_ || quit.ids.empty();
    std::set<std::shared_ptr<Process>> told;
    for (const Id id : present(quit.ids)) {
        if (const auto process = client(id).process; told.insert(process).second) {
            dismiss(*process, now_ns);
        }
    }
}

// Whoever asks for the end of those that are gone for good has not heard of it.
void Relaying::obey(const Evict& evict) {
    Ids ids = evict.ids.empty() ? ids_ : evict.ids;
    std::erase_if(ids, [this](Id id) { return !ours(id); });
    for (const ChildExit& exit : gone_) {
        if (std::ranges::find_first_of(exit.ids, ids) != exit.ids.end()) {
            ends_.say(exit);
        }
    }
    ends_.kill(ids, evict.incarnation.value_or(UINT32_MAX));
}

void Relaying::obey(const Ids& named, Command&& told, std::int64_t now_ns) {
    const Step step = told.step;
    if (step == Step::configure && (told.epoch > epoch_ || commands_.empty())) {
        begin(told.epoch);
    }
    // Whom the controller does not know of yet it does not mean, but a process that has ended.
    Ids meant = present(named);
    std::erase_if(meant, [this](Id id) { return !client(id).known; });
    if (told.epoch != epoch_) {
        tell(meant, told.body);
        return;
    }
    auto& command = commands_[told.body];
    if (command == nullptr) {
        command = std::make_shared<const Command>(std::move(told));
    }
    Ids to_tell;
    std::set<std::size_t> batches;
    std::map<std::shared_ptr<Process>, std::int64_t> pinged;
    for (const Id id : meant) {
        Client& it = client(id);
        const Told& before = it.told[at(step)];
        if (unheeded(it, step)) {
            to_tell.push_back(id);
        } else if (before.command == command && before.answered) {
            repeat(id, step, now_ns, batches);
        } else {
            const bool another = before.command != nullptr && before.command != command;
            order(it, command, another ? ping(it.process, pinged) : before.deaf_until, now_ns);
            to_tell.push_back(id);
        }
    }
    tell(to_tell, command->body);
    for (const std::size_t batch : batches) {
        ends_.say(batches_[batch].head, batches_[batch].payload);
    }
    complete(step);
    if (unready_ == 0) {
        say_readies();
    }
}

// Everything of the epoch before is forgotten, but what went wrong in it.
void Relaying::begin(std::uint32_t epoch) {
    say_complaints();
    epoch_ = epoch;
    commands_.clear();
    unanswered_.fill(0);
    unready_ = 0;
    for (auto& acks : acks_) {
        acks.clear();
    }
    readies_.clear();
    known_complaints_.clear();
    reports_.clear();
    reports_due_ns_ = kNeverNs;
    batches_.clear();
    for (Client& it : clients_) {
        it.told = {};
        it.failed = it.awaited = it.reported = it.cohort = false;
        it.ready.reset();
        it.complaint.reset();
        it.report.reset();
    }
}

// What a client ignores is passed on, and not said again at a time when it might be heeded.
bool Relaying::unheeded(const Client& client, Step step) const {
    const auto told = [&](Step before) { return client.told[at(before)].command != nullptr; };
    if (role_ == Role::publisher && (step == Step::finish || (step == Step::stop && !told(Step::start)))) {
        return true;
    }
    return step != Step::configure && !told(Step::configure);
}

void Relaying::order(Client& client, const std::shared_ptr<const Command>& command, std::int64_t deaf_until,
                     std::int64_t now_ns) {
    Told& told = client.told[at(command->step)];
    if (told.command == nullptr || told.answered) {
        ++unanswered_[at(command->step)];
    }
    if (told.command != command) {
        // Another one: what was answered before is no answer to it.
        if (command->step == Step::configure) {
            client.ready.reset();
            client.failed = false;
            client.cohort = command->cohort;
            await_no_longer(client);
            client.awaited = command->ready_follows;
            unready_ += client.awaited ? 1 : 0;
        }
        if (command->step == Step::stop) {
            client.report.reset();
        }
    }
    told = {.command = command, .answered = false, .again_ns = now_ns + kAgainNs, .deaf_until = deaf_until};
    again_ns_ = std::min(again_ns_, told.again_ns);
}

// Once a process: when it is answered, all that was told before has been.
std::int64_t Relaying::ping(const std::shared_ptr<Process>& process,
                            std::map<std::shared_ptr<Process>, std::int64_t>& pinged) {
    std::int64_t& time = pinged[process];
    if (time == 0) {
        time = ++pings_;
        ends_.tell(process->connection, encode(Ping{.ids = {}, .time_ns = time, .reply = true}));
    }
    return time;
}

// What this client has answered, from memory.
void Relaying::repeat(Id id, Step step, std::int64_t now_ns, std::set<std::size_t>& batches) {
    const Client& it = client(id);
    const bool reports = step == (role_ == Role::publisher ? Step::stop : Step::finish);
    if ((step == Step::configure && it.failed) || (reports && !it.report && !it.reported)) {
        complaints_.add(*it.complaint, id, now_ns);
    } else if (it.report && reports) {
        ends_.say(*it.report);
    } else if (reports) {
        if (it.batch < batches_.size()) {
            batches.insert(it.batch);
        }
    } else {
        acks_[at(step)].add(epoch_, id, now_ns);
        acked_ns_[at(step)] = now_ns;
        if (step == Step::configure && it.ready) {
            readies_.add(*it.ready, id, now_ns);
        }
    }
}

// --- what clients say -------------------------------------------------------------------------------------

void Relaying::hear(const std::string& connection, FromClient&& message, std::int64_t now_ns) {
    if (const auto* hello = std::get_if<Hello>(&message)) {
        introduce(connection, *hello, now_ns);
        return;
    }
    const auto found = processes_.find(connection);
    if (found != processes_.end()) {
        const std::shared_ptr<Process> process = found->second;
        std::visit([&](auto& it) { hear(*process, std::move(it), now_ns); }, message);
    }
}

void Relaying::introduce(const std::string& connection, const Hello& hello, std::int64_t now_ns) {
    if (const auto known = processes_.find(connection); known != processes_.end()) {
        if (welcome_) {
            welcome(*known->second);
        }
        return;
    }
    const auto newer = [&](Id id) {
        return ours(id) && (!client(id).process || client(id).process->incarnation < hello.incarnation);
    };
    if (hello.ids.empty() || !std::ranges::all_of(hello.ids, newer)) {
        return;
    }
    auto process = std::make_shared<Process>();
    process->connection = connection;
    process->ids = hello.ids;
    process->incarnation = hello.incarnation;
    process->pid = hello.pid;
    for (const Id id : hello.ids) {
        if (const auto earlier = client(id).process) {
            depart(earlier);
        }
        client(id).process = process;
        ++there_;
    }
    processes_[connection] = process;
    announce_ns_ = std::min(announce_ns_, now_ns + kGatherNs);
    if (there_ == ids_.size()) {
        announce_ns_ = now_ns;
    }
    if (welcome_) {
        welcome(*process);
    }
    if (dismissed_) {
        dismiss(*process, now_ns);
    }
}

// It lives on its parent alone, however long the controller is silent.
void Relaying::welcome(const Process& process) {
    ends_.tell(process.connection, encode(Welcome{.ids = {}, .run = welcome_->run, .silence_s = 0}));
}

void Relaying::dismiss(Process& process, std::int64_t now_ns) {
    ends_.tell(process.connection, encode(Quit{}));
    process.quit_again_ns = now_ns + kAgainNs;
    again_ns_ = std::min(again_ns_, process.quit_again_ns);
}

void Relaying::hear(Process& process, const Ack& ack, std::int64_t now_ns) {
    if (ack.command == "ping") {
        for (const Id id : carried(process, ack.ids)) {
            for (Told& told : client(id).told) {
                told.deaf_until = told.deaf_until == ack.echo ? 0 : told.deaf_until;
            }
        }
        return;
    }
    const auto word = std::ranges::find(kStepWords, ack.command);
    if (ack.epoch != epoch_ || word == kStepWords.end()) {
        return;
    }
    const Step step = kAllSteps[static_cast<std::size_t>(word - kStepWords.begin())];
    bool new_to_us = false;
    for (const Id id : carried(process, ack.ids)) {
        if (answer(client(id), step)) {
            acks_[at(step)].add(epoch_, id, now_ns);
            acked_ns_[at(step)] = now_ns;
            new_to_us = true;
        }
    }
    if (new_to_us) {
        complete(step);
    }
}

void Relaying::hear(Process& process, const Ready& ready, std::int64_t now_ns) {
    if (ready.epoch != epoch_) {
        return;
    }
    bool new_to_us = false;
    for (const Id id : carried(process, ready.ids)) {
        Client& it = client(id);
        const bool told = it.told[at(Step::configure)].command != nullptr && !deaf(it, Step::configure);
        if (told && it.ready != ready.endpoint) {
            it.ready = ready.endpoint;
            await_no_longer(it);
            readies_.add(ready.endpoint, id, now_ns);
            new_to_us = true;
        }
    }
    if (new_to_us && unready_ == 0) {
        say_readies();
    }
}

void Relaying::hear(Process& process, const Progress& progress, std::int64_t) {
    Progress it = progress;
    it.ids = carried(process, progress.ids);
    if (it.epoch == epoch_ && !it.ids.empty()) {
        ends_.say(it);
    }
}

void Relaying::hear(Process& process, Report&& report, std::int64_t now_ns) {
    const Ids ids = own(process, report.ids);
    if (report.epoch != epoch_ || ids.size() != 1) {
        return;
    }
    if (auto* body = std::get_if<SubscriberReport>(&report.body)) {
        take_report(process, ids.front(), std::move(*body), now_ns);
        if (process.ended) {
            complete(Step::finish);  // it was not waited for
        }
        return;
    }
    Client& it = client(ids.front());
    if (deaf(it, Step::stop) && !process.ended) {
        return;
    }
    if (it.report == nullptr) {
        it.report = std::make_shared<const Report>(std::move(report));
        ends_.say(*it.report);
    }
    if (!process.ended) {
        answer(it, Step::stop);
    }
}

void Relaying::hear(Process& process, Reports&& reports, std::int64_t now_ns) {
    auto* rows = std::get_if<std::vector<SubscriberReport>>(&reports.bodies);
    if (reports.epoch != epoch_ || rows == nullptr || rows->size() != reports.ids.size() ||
        own(process, reports.ids).size() != rows->size()) {
        return;
    }
    for (std::size_t i = 0; i < rows->size(); ++i) {
        take_report(process, reports.ids[i], std::move((*rows)[i]), now_ns);
    }
    if (process.ended) {
        complete(Step::finish);
    }
}

// The first one of an id counts, also where its process has been replaced since.
void Relaying::take_report(const Process& process, Id id, SubscriberReport&& report, std::int64_t now_ns) {
    Client& it = client(id);
    if (deaf(it, Step::finish) && !process.ended) {
        return;
    }
    if (!it.reported) {
        if (!reports_.empty() && reports_.bytes() + batch_bytes(report) > kBatchBytes) {
            say_batch();
        }
        if (reports_.empty()) {
            reports_due_ns_ = now_ns + kReportsWaitNs;
        }
        reports_.add(id, std::move(report), it.cohort);
        it.reported = true;
        it.batch = batches_.size();
        if (reports_.bytes() >= kBatchBytes) {
            say_batch();
        }
    } else if (!process.ended && !it.told[at(Step::finish)].answered && it.batch < batches_.size()) {
        // A report never leaves its batch: whoever was asked anew is answered by that.
        ends_.say(batches_[it.batch].head, batches_[it.batch].payload);
    }
    if (!process.ended && answer(it, Step::finish)) {
        complete(Step::finish);
    }
}

// Of its epoch it is the answer to whatever may fail and is not answered yet.
void Relaying::hear(Process& process, const Error& error, std::int64_t now_ns) {
    if (error.epoch != epoch_ && error.epoch != 0) {
        return;
    }
    Ids ids = own(process, error.ids);
    if (error.epoch == epoch_ && !process.ended) {
        std::erase_if(ids, [this](Id id) {
            return deaf(client(id), Step::configure) || deaf(client(id), Step::finish);
        });
    }
    if (ids.empty()) {
        return;
    }
    const Complaint complaint{error.epoch, error.message, error.fatal};
    if (known_complaints_.insert(complaint).second) {
        ends_.say(Error{.ids = ids, .epoch = error.epoch, .message = error.message, .fatal = error.fatal});
    } else {
        for (const Id id : ids) {
            complaints_.add(complaint, id, now_ns);
        }
    }
    if (error.epoch != epoch_ || process.ended) {
        return;
    }
    std::set<Step> answers;
    for (const Id id : ids) {
        Client& it = client(id);
        it.complaint = complaint;
        if (answer(it, Step::configure)) {
            answers.insert(Step::configure);
            it.failed = true;
            await_no_longer(it);
        } else if (answer(it, Step::finish)) {
            answers.insert(Step::finish);
        }
    }
    for (const Step step : answers) {
        complete(step);
    }
    if (!answers.empty() && unready_ == 0) {
        say_readies();
    }
}

// --- who is there -----------------------------------------------------------------------------------------

void Relaying::take_exit(const ChildExit& exit, std::int64_t) {
    say_complaints();  // it may have said why
    const auto process = client(exit.ids.front()).process;
    if (process && process->incarnation <= exit.incarnation) {
        depart(process);
    }
    ends_.say(exit);
    if (!exit.replaced) {
        gone_.push_back(exit);
    }
    // Perhaps it was the last that was waited for.
    for (const Step step : kAllSteps) {
        complete(step);
    }
    if (unready_ == 0) {
        say_readies();
    }
}

// What it has reported stays.
void Relaying::depart(const std::shared_ptr<Process>& process) {
    for (const Id id : process->ids) {
        Client& it = client(id);
        for (const Step step : kAllSteps) {
            it.told[at(step)].deaf_until = 0;
            answer(it, step);
        }
        await_no_longer(it);
        Client next;
        // A welcome of this one may be on its way, and would name the next one as well.
        const bool welcome_may_come = it.unwelcomed > 0 || (!it.known && it.named_from > 1);
        next.named_from = welcome_may_come ? 2 : 1;
        next.cohort = it.cohort;
        next.report = it.report;
        next.reported = it.reported;
        next.batch = it.batch;
        it = std::move(next);
        --there_;
    }
    process->ended = true;
    process->quit_again_ns = kNeverNs;
}

Ids Relaying::present(const Ids& named) const {
    Ids there;
    std::ranges::copy_if(named.empty() ? ids_ : named, std::back_inserter(there), [this](Id id) {
        return ours(id) && clients_[id - ids_.front()].process != nullptr;
    });
    return there;
}

Ids Relaying::carried(const Process& process, const Ids& named) {
    Ids ids;
    std::ranges::copy_if(named, std::back_inserter(ids),
                         [&](Id id) { return ours(id) && client(id).process.get() == &process; });
    return ids;
}

Ids Relaying::own(const Process& process, const Ids& named) {
    if (!process.ended) {
        return carried(process, named);
    }
    const std::set<Id> its(process.ids.begin(), process.ids.end());
    Ids ids;
    std::ranges::copy_if(named, std::back_inserter(ids), [&](Id id) { return its.contains(id); });
    return ids;
}

// --- what was answered ------------------------------------------------------------------------------------

// Whether what this client says may answer what it was told before the last command of this kind.
bool Relaying::deaf(const Client& client, Step step) {
    return client.told[at(step)].deaf_until != 0;
}

// Whether it was not known before.
bool Relaying::answer(Client& client, Step step) {
    Told& told = client.told[at(step)];
    if (told.command == nullptr || told.answered || deaf(client, step)) {
        return false;
    }
    told.answered = true;
    --unanswered_[at(step)];
    return true;
}

void Relaying::await_no_longer(Client& client) {
    unready_ -= client.awaited ? 1 : 0;
    client.awaited = false;
}

// Nobody who was told has yet to answer: nothing that waits has to wait for more.
void Relaying::complete(Step step) {
    if (unanswered_[at(step)] != 0) {
        return;
    }
    say_acks(step);
    if (step == Step::configure || step == Step::finish) {
        say_complaints();
    }
    if (step == Step::finish) {
        say_batch();
    }
}

// --- what is said -----------------------------------------------------------------------------------------

void Relaying::go_on(std::int64_t now_ns) {
    for (const Step step : kAllSteps) {
        if (now_ns >= acks_[at(step)].due_ns()) {
            say_acks(step);
        }
    }
    if (now_ns >= readies_.due_ns()) {
        say_readies();
    }
    if (now_ns >= complaints_.due_ns()) {
        say_complaints();
    }
    if (now_ns >= reports_due_ns_) {
        say_batch();
    }
    if (now_ns >= std::min(announce_ns_, announce_again_ns_) && welcome_) {
        say_joined(now_ns);
    }
    if (now_ns >= again_ns_) {
        tell_again(now_ns);
    }
}

std::int64_t Relaying::due_ns() const {
    std::int64_t due_ns = std::min({readies_.due_ns(), complaints_.due_ns(), reports_due_ns_, again_ns_});
    for (const auto& acks : acks_) {
        due_ns = std::min(due_ns, acks.due_ns());
    }
    return welcome_ ? std::min({due_ns, announce_ns_, announce_again_ns_}) : due_ns;
}

void Relaying::say_answers() {
    for (const Step step : kAllSteps) {
        say_acks(step);
    }
    say_readies();
    say_complaints();
}

void Relaying::say_everything() {
    say_answers();
    say_batch();
}

void Relaying::say_acks(Step step) {
    acks_[at(step)].flush([&](std::uint32_t epoch, Ids ids) {
        ends_.say(Ack{.ids = std::move(ids),
                      .epoch = epoch,
                      .command = kStepWords[at(step)],
                      .time_ns = acked_ns_[at(step)]});
    });
}

void Relaying::say_readies() {
    readies_.flush([&](const Readiness& endpoint, Ids ids) {
        ends_.say(Ready{.ids = std::move(ids), .epoch = epoch_, .endpoint = endpoint});
    });
}

void Relaying::say_complaints() {
    complaints_.flush([&](const Complaint& complaint, Ids ids) {
        const auto& [epoch, message, fatal] = complaint;
        ends_.say(Error{.ids = std::move(ids), .epoch = epoch, .message = message, .fatal = fatal});
    });
}

void Relaying::say_batch() {
    reports_due_ns_ = kNeverNs;
    if (reports_.empty()) {
        return;
    }
    BatchColumns it = reports_.take();
    BatchHead head{.ids = std::move(it.ids), .epoch = epoch_, .columns = std::move(it.columns)};
    const KeptBatch& kept = batches_.emplace_back(KeptBatch{std::move(head), std::move(it.payload)});
    ends_.say(kept.head, kept.payload);
}

// Those that are new, and again those that the controller has not welcomed.
void Relaying::say_joined(std::int64_t now_ns) {
    Joined joined;
    const auto say = [&] {
        if (!joined.ids.empty()) {
            ends_.say(std::exchange(joined, {}));
        }
    };
    announce_again_ns_ = kNeverNs;
    for (const Id id : present({})) {
        Client& it = client(id);
        if (it.known) {
            continue;
        }
        if (it.announced > 0 && now_ns < it.announced_ns + kAgainNs) {
            announce_again_ns_ = std::min(announce_again_ns_, it.announced_ns + kAgainNs);
            continue;
        }
        ++it.announced;
        ++it.unwelcomed;
        it.announced_ns = now_ns;
        announce_again_ns_ = std::min(announce_again_ns_, now_ns + kAgainNs);
        joined.ids.push_back(id);
        joined.incarnations.push_back(it.process->incarnation);
        joined.pids.push_back(it.process->pid);
        if (joined.ids.size() == kJoinedOfMessage) {
            say();
        }
    }
    say();
    announce_ns_ = kNeverNs;
}

// --- who is told again ------------------------------------------------------------------------------------

void Relaying::tell_again(std::int64_t now_ns) {
    again_ns_ = kNeverNs;
    for (const Step step : kAllSteps) {
        tell_again(step, now_ns);
    }
    for (const auto& [connection, process] : processes_) {
        if (process->quit_again_ns <= now_ns) {
            dismiss(*process, now_ns);
        }
        again_ns_ = std::min(again_ns_, process->quit_again_ns);
    }
}

void Relaying::tell_again(Step step, std::int64_t now_ns) {
    if (unanswered_[at(step)] == 0) {
        return;
    }
    std::map<std::shared_ptr<const Command>, Ids> again;
    for (const Id id : present({})) {
        Told& told = client(id).told[at(step)];
        if (told.command == nullptr || told.answered) {
            continue;
        }
        if (told.again_ns <= now_ns) {
            told.again_ns = now_ns + kAgainNs;
            again[told.command].push_back(id);
        }
        again_ns_ = std::min(again_ns_, told.again_ns);
    }
    for (const auto& [command, ids] : again) {
        tell(ids, command->body);
    }
}

// Each process is told once, of all of its clients that are meant.
void Relaying::tell(const Ids& ids, const std::string& body) {
    for (auto first = ids.begin(); first != ids.end();) {
        const auto process = client(*first).process;
        const auto last =
            std::find_if(first, ids.end(), [&](Id id) { return client(id).process != process; });
        const Ids meant(first, last);
        const bool all = meant.size() == process->ids.size();
        ends_.tell(process->connection, all ? body : with_ids(body, meant));
        first = last;
    }
}

}  // namespace hydra
