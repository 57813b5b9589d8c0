#include "common/relay_state.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "common/protocol.h"

namespace hydra {
namespace {

// Far fewer than fit into a message.
constexpr std::size_t kJoinedOfMessage = 10'000;
// How long the first time series of a client waits for those of others.
constexpr std::int64_t kCourseWithinNs = 500 * kMillisecondNs;

}  // namespace

RelayState::RelayState(Ids ids, Role role, RelayOutputs& ends)
    : ids_(std::move(ids)),
      role_(role),
      ends_(ends),
      carriers_(ids_),
      joining_(ids_),
      commands_(ids_, role),
      answers_(ids_, [&ends](const FromClient& message) { ends.say(message); }),
      batching_(ids_) {}

// --- messages from the controller -------------------------------------------------------------------------

void RelayState::obey(const FromController& message, std::string_view frame, std::int64_t now_ns) {
    std::visit(
        [&](const auto& it) {
            using Message = std::decay_t<decltype(it)>;
            if constexpr (requires { Message::kStep; }) {
                Command command{Message::kStep, it.epoch, it.number, without_ids(frame)};
                if constexpr (std::is_same_v<Message, Configure>) {
                    command.ready_follows = role_ == Role::publisher || it.probe;
                    command.cohort = it.cohort;
                }
                obey(it.ids, std::move(command), now_ns);
            } else if constexpr (std::is_same_v<Message, Welcome> || std::is_same_v<Message, Quit>) {
                obey(it, now_ns);
            } else if constexpr (std::is_same_v<Message, Evict>) {
                obey(it);
            }
        },
        message);
}

// The first welcome is the relay's own: then it welcomes its clients and sends their registrations.
void RelayState::obey(const Welcome& it, std::int64_t now_ns) {
    if (!welcome_) {
        welcome_ = it;
        for (const auto& [connection, carrier] : carriers_.all()) {
            welcome(*carrier);
        }
        joining_.hurry(now_ns);
    }
    for (const Id id : it.ids) {
        if (carriers_.holds(id)) {
            joining_.named(id);
        }
    }
}

void RelayState::obey(const Quit& quit, std::int64_t now_ns) {
    dismissed_ = dismissed_ || quit.ids.empty();
    std::set<std::shared_ptr<Carrier>> told;
    for (const Id id : carriers_.present(quit.ids)) {
        if (const auto& carrier = carriers_.of(id); told.insert(carrier).second) {
            dismiss(*carrier, now_ns);
        }
    }
}

// The controller that evicts a client that is dead for good has not received its end.
void RelayState::obey(const Evict& evict) {
    Ids ids = evict.ids.empty() ? ids_ : evict.ids;
    std::erase_if(ids, [this](Id id) { return !carriers_.holds(id); });
    for (const ChildExit& exit : gone_) {
        if (std::ranges::find_first_of(exit.ids, ids) != exit.ids.end()) {
            ends_.say(exit);
        }
    }
    ends_.kill(ids, evict.incarnation.value_or(UINT32_MAX));
}

void RelayState::obey(const Ids& named, Command&& command, std::int64_t now_ns) {
    const Step step = command.step;
    if (commands_.begins(command)) {
        begin(command.epoch);
    }
    // A process that replaced a dead client and is not yet known to the controller must not get this command.
    Ids meant = carriers_.present(named);
    std::erase_if(meant, [this](Id id) { return !joining_.is_named(id); });
    if (command.epoch != commands_.epoch()) {
        tell(meant, command.body);
        return;
    }
    const Command it = command;
    const CommandTargets given = commands_.give(std::move(command), meant, now_ns);
    for (const Id id : given.fresh) {
        answers_.ask(id, it);
    }
    tell(given.tell, it.body);
    repeat(given.answered, it, now_ns);
    complete(step);
    answers_.say_proofs();
}

// Discards everything of the previous epoch, except that its errors are sent.
void RelayState::begin(std::uint32_t epoch) {
    answers_.begin(epoch);
    commands_.begin(epoch);
    batching_.clear();
    courses_ = {};
    course_at_ns_ = kNeverNs;
}

// Sends the stored answers of these clients again.
void RelayState::repeat(const Ids& answered, const Command& command, std::int64_t now_ns) {
    const bool reports = command.step == (role_ == Role::publisher ? Step::stop : Step::finish);
    std::set<const ReportBatch*> batches;
    for (const Id id : answered) {
        if (!reports) {
            answers_.repeat(id, command, now_ns);
        } else if (const auto& report = answers_.report(id)) {
            ends_.say(*report);
        } else if (!batching_.holds(id)) {
            answers_.repeat_complaint(id, now_ns);
        } else if (const ReportBatch* batch = batching_.of(id); batches.insert(batch).second) {
            say_batch(batch);
        }
    }
}

// --- messages from clients --------------------------------------------------------------------------------

void RelayState::hear(const std::string& connection, FromClient&& message, std::int64_t now_ns) {
    if (const auto* hello = std::get_if<Hello>(&message)) {
        introduce(connection, *hello, now_ns);
        return;
    }
    if (const auto carrier = carriers_.at(connection)) {
        std::visit([&](auto& it) { hear(*carrier, std::move(it), now_ns); }, message);
    }
}

void RelayState::introduce(const std::string& connection, const Hello& hello, std::int64_t now_ns) {
    if (const auto known = carriers_.at(connection)) {
        if (welcome_) {
            welcome(*known);
        }
        return;
    }
    if (!carriers_.newer(hello)) {
        return;
    }
    for (const Id id : hello.ids) {
        if (const auto earlier = carriers_.of(id)) {
            depart(*earlier);
        }
    }
    const auto carrier = carriers_.come(connection, hello);
    for (const Id id : hello.ids) {
        joining_.add(id, now_ns);
    }
    if (welcome_) {
        welcome(*carrier);
    }
    if (dismissed_) {
        dismiss(*carrier, now_ns);
    }
}

// The welcome has no limit for silence: a client ends with its parent.
void RelayState::welcome(const Carrier& carrier) {
    ends_.tell(carrier.connection, encode(Welcome{.ids = {}, .run = welcome_->run, .silence_s = 0}));
}

void RelayState::dismiss(Carrier& carrier, std::int64_t now_ns) {
    ends_.tell(carrier.connection, encode(Quit{}));
    carrier.quit_again_ns = now_ns + kAgainNs;
    quit_again_ns_ = std::min(quit_again_ns_, carrier.quit_again_ns);
}

void RelayState::hear(Carrier& carrier, const Ack& ack, std::int64_t now_ns) {
    const auto step = step_of(ack.command);
    if (ack.epoch != commands_.epoch() || !step) {
        return;
    }
    bool new_to_us = false;
    for (const Id id : carriers_.carried(carrier, ack.ids)) {
        if (commands_.answer(id, *step, ack.number)) {
            answers_.acknowledge(id, *step, ack.number, now_ns);
            new_to_us = true;
        }
    }
    if (new_to_us) {
        complete(*step);
    }
}

void RelayState::hear(Carrier& carrier, const Ready& ready, std::int64_t now_ns) {
    if (ready.epoch != commands_.epoch()) {
        return;
    }
    bool new_to_us = false;
    for (const Id id : carriers_.carried(carrier, ready.ids)) {
        const bool late = commands_.late(id, Step::configure, ready.number);
        new_to_us = (!late && answers_.prove(id, ready, now_ns)) || new_to_us;
    }
    if (new_to_us) {
        answers_.say_proofs();
    }
}

void RelayState::hear(Carrier& carrier, const Progress& progress, std::int64_t) {
    Progress it = progress;
    it.ids = carriers_.carried(carrier, progress.ids);
    if (it.epoch == commands_.epoch() && !it.ids.empty()) {
        ends_.say(it);
    }
}

void RelayState::hear(Carrier& carrier, const TimeSeries& course, std::int64_t now_ns) {
    const Ids ids = carriers_.own(carrier, course.ids);
    if (course.epoch == commands_.epoch() && !ids.empty()) {
        courses_[answers_.cohort(ids.front())].add(course.seconds);
        course_at_ns_ = std::min(course_at_ns_, now_ns + kCourseWithinNs);
    }
}

// Sends the sums of the time series. They precede the reports, so a controller with the reports has
// them.
void RelayState::say_course() {
    if (course_at_ns_ == kNeverNs) {
        return;
    }
    course_at_ns_ = kNeverNs;
    for (std::size_t cohort = 0; cohort < courses_.size(); ++cohort) {
        for (std::vector<SecondCounts>& part : parts_of(courses_[cohort].take())) {
            TimeSeries it{.ids = ids_, .epoch = commands_.epoch()};
            (cohort == 0 ? it.seconds : it.cohort) = std::move(part);
            ends_.say(it);
        }
    }
}

void RelayState::hear(Carrier& carrier, Report&& report, std::int64_t now_ns) {
    const Ids ids = carriers_.own(carrier, report.ids);
    if (report.epoch != commands_.epoch() || ids.size() != 1) {
        return;
    }
    if (auto* body = std::get_if<SubscriberReport>(&report.body)) {
        take_report(carrier, ids.front(), report.number, std::move(*body), now_ns);
        if (carrier.ended) {
            complete(Step::finish);  // no answer of an ended client is waited for
        }
        return;
    }
    if (!carrier.ended && commands_.late(ids.front(), Step::stop, report.number)) {
        return;
    }
    if (auto& first = answers_.report(ids.front()); first == nullptr) {
        first = std::make_shared<const Report>(std::move(report));
        say_course();
        ends_.say(*first);
    }
    if (!carrier.ended) {
        commands_.answer(ids.front(), Step::stop, report.number);
    }
}

void RelayState::hear(Carrier& carrier, Reports&& reports, std::int64_t now_ns) {
    auto* rows = std::get_if<std::vector<SubscriberReport>>(&reports.bodies);
    if (reports.epoch != commands_.epoch() || rows == nullptr || rows->size() != reports.ids.size() ||
        carriers_.own(carrier, reports.ids).size() != rows->size()) {
        return;
    }
    for (std::size_t i = 0; i < rows->size(); ++i) {
        take_report(carrier, reports.ids[i], reports.number, std::move((*rows)[i]), now_ns);
    }
    if (carrier.ended) {
        complete(Step::finish);
    }
}

// The first report of an id counts, even if its process was replaced since.
void RelayState::take_report(const Carrier& carrier, Id id, std::uint32_t number, SubscriberReport&& report,
                             std::int64_t now_ns) {
    if (!carrier.ended && commands_.late(id, Step::finish, number)) {
        return;
    }
    if (!batching_.holds(id)) {
        const bool cohort = answers_.cohort(id);
        for (const ReportBatch* full :
             batching_.add(commands_.epoch(), id, std::move(report), cohort, now_ns)) {
            say_batch(full);
        }
    } else if (!carrier.ended && !commands_.answered(id, Step::finish)) {
        // A report stays in its batch, so the batch answers a repeated command.
        say_batch(batching_.of(id));
    }
    if (!carrier.ended && commands_.answer(id, Step::finish, number)) {
        complete(Step::finish);
    }
}

// An error may answer a `configure` or a `finish`; one to an earlier command is late.
void RelayState::hear(Carrier& carrier, const Error& error, std::int64_t now_ns) {
    if (error.epoch != commands_.epoch() && error.epoch != 0) {
        return;
    }
    Ids ids = carriers_.own(carrier, error.ids);
    if (error.epoch == commands_.epoch() && error.number != 0 && !carrier.ended) {
        std::erase_if(ids, [&](Id id) {
            return commands_.late(id, Step::configure, error.number) &&
                   commands_.late(id, Step::finish, error.number);
        });
    }
    if (ids.empty()) {
        return;
    }
    answers_.complain(ids, error, now_ns);
    if (error.epoch != commands_.epoch() || carrier.ended) {
        return;
    }
    std::set<Step> answered;
    for (const Id id : ids) {
        for (const Step step : {Step::configure, Step::finish}) {
            if (commands_.answer(id, step, error.number)) {
                answers_.fail(id, step, error);
                answered.insert(step);
                break;
            }
        }
    }
    for (const Step step : answered) {
        complete(step);
    }
    if (!answered.empty()) {
        answers_.say_proofs();
    }
}

// --- joining and leaving ----------------------------------------------------------------------------------

void RelayState::take_exit(const ChildExit& exit, std::int64_t) {
    answers_.say_complaints();  // its last error may be the reason
    const auto carrier = carriers_.of(exit.ids.front());
    if (carrier && carrier->incarnation <= exit.incarnation) {
        depart(*carrier);
    }
    ends_.say(exit);
    if (!exit.replaced) {
        gone_.push_back(exit);
    }
    // This client may have been the last one without an answer.
    for (const Step step : kAllSteps) {
        complete(step);
    }
    answers_.say_proofs();
}

// The client's report stays.
void RelayState::depart(Carrier& carrier) {
    for (const Id id : carrier.ids) {
        answers_.left(id);
        commands_.left(id);
        joining_.left(id);
    }
    carriers_.left(carrier);
}

// If no client owes an answer, the gathered answers need not wait for more.
void RelayState::complete(Step step) {
    if (commands_.awaited(step)) {
        return;
    }
    answers_.say_acks(step);
    if (step == Step::configure || step == Step::finish) {
        answers_.say_complaints();
    }
    if (step == Step::finish) {
        say_batch(batching_.flush(commands_.epoch()));
    }
}

// --- sending ----------------------------------------------------------------------------------------------

void RelayState::go_on(std::int64_t now_ns) {
    answers_.go_on(now_ns);
    if (now_ns >= course_at_ns_) {
        say_course();
    }
    if (now_ns >= batching_.due_ns()) {
        say_batch(batching_.flush(commands_.epoch()));
    }
    if (welcome_) {
        say_joined(joining_.take(now_ns));
    }
    for (const auto& [command, ids] : commands_.again(now_ns)) {
        tell(ids, command->body);
    }
    quit_again(now_ns);
}

std::int64_t RelayState::due_ns() const {
    const std::int64_t due_ns =
        std::min({answers_.due_ns(), batching_.due_ns(), commands_.due_ns(), quit_again_ns_, course_at_ns_});
    return welcome_ ? std::min(due_ns, joining_.due_ns()) : due_ns;
}

void RelayState::say_everything() {
    answers_.say_all();
    say_batch(batching_.flush(commands_.epoch()));
}

// Null: nothing is sent.
void RelayState::say_batch(const ReportBatch* batch) {
    if (batch != nullptr) {
        say_course();
        ends_.say(batch->head, batch->payload);
    }
}

void RelayState::say_joined(const Ids& ids) {
    for (std::size_t first = 0; first < ids.size(); first += kJoinedOfMessage) {
        Joined joined;
        for (std::size_t i = first; i < std::min(first + kJoinedOfMessage, ids.size()); ++i) {
            const Carrier& carrier = *carriers_.of(ids[i]);
            joined.ids.push_back(ids[i]);
            joined.incarnations.push_back(carrier.incarnation);
            joined.pids.push_back(carrier.pid);
        }
        ends_.say(joined);
    }
}

void RelayState::quit_again(std::int64_t now_ns) {
    if (now_ns < quit_again_ns_) {
        return;
    }
    quit_again_ns_ = kNeverNs;
    for (const auto& [connection, carrier] : carriers_.all()) {
        if (carrier->quit_again_ns <= now_ns) {
            dismiss(*carrier, now_ns);
        }
        quit_again_ns_ = std::min(quit_again_ns_, carrier->quit_again_ns);
    }
}

// Each process gets the command once, for all of its clients among these.
void RelayState::tell(const Ids& ids, const std::string& body) {
    for (auto first = ids.begin(); first != ids.end();) {
        const auto& carrier = carriers_.of(*first);
        const auto last = std::find_if(first, ids.end(), [&](Id id) { return carriers_.of(id) != carrier; });
        const Ids meant(first, last);
        const bool all = meant.size() == carrier->ids.size();
        ends_.tell(carrier->connection, all ? body : with_ids(body, meant));
        first = last;
    }
}

}  // namespace hydra
