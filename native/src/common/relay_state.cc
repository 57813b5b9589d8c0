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
constexpr std::int64_t kTimeSeriesWithinNs = 500 * kMillisecondNs;

}  // namespace

RelayState::RelayState(Ids ids, Role role, RelayOutputs& ends)
    : ids_(std::move(ids)),
      role_(role),
      ends_(ends),
      connections_(ids_),
      joining_(ids_),
      commands_(ids_, role),
      answers_(ids_, [&ends](const FromClient& message) { ends.to_controller(message); }),
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
        for (const auto& [name, connection] : connections_.all()) {
            welcome(*connection);
        }
        joining_.hurry(now_ns);
    }
    for (const Id id : it.ids) {
        if (connections_.holds(id)) {
            joining_.named(id);
        }
    }
}

void RelayState::obey(const Quit& quit, std::int64_t now_ns) {
    dismissed_ = dismissed_ || quit.ids.empty();
    std::set<std::shared_ptr<ClientConnection>> quitting;
    for (const Id id : connections_.present(quit.ids)) {
        if (const auto& connection = connections_.of(id); quitting.insert(connection).second) {
            dismiss(*connection, now_ns);
        }
    }
}

// The controller that evicts a client that is dead for good has not received its end.
void RelayState::obey(const Evict& evict) {
    Ids ids = evict.ids.empty() ? ids_ : evict.ids;
    std::erase_if(ids, [this](Id id) { return !connections_.holds(id); });
    for (const ChildExit& exit : final_exits_) {
        if (std::ranges::find_first_of(exit.ids, ids) != exit.ids.end()) {
            ends_.to_controller(exit);
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
    Ids meant = connections_.present(named);
    std::erase_if(meant, [this](Id id) { return !joining_.is_named(id); });
    if (command.epoch != commands_.epoch()) {
        send_command(meant, command.body);
        return;
    }
    const Command it = command;
    const CommandTargets given = commands_.give(std::move(command), meant, now_ns);
    for (const Id id : given.fresh) {
        answers_.ask(id, it);
    }
    send_command(given.recipients, it.body);
    repeat(given.answered, it, now_ns);
    complete(step);
    answers_.send_complete_readiness();
}

// Discards everything of the previous epoch, except that its errors are sent.
void RelayState::begin(std::uint32_t epoch) {
    answers_.begin(epoch);
    commands_.begin(epoch);
    batching_.clear();
    time_series_ = {};
    time_series_at_ns_ = kNeverNs;
}

// Sends the stored answers of these clients again.
void RelayState::repeat(const Ids& answered, const Command& command, std::int64_t now_ns) {
    const bool reports = command.step == (role_ == Role::publisher ? Step::stop : Step::finish);
    std::set<const ReportBatch*> batches;
    for (const Id id : answered) {
        if (!reports) {
            answers_.repeat(id, command, now_ns);
        } else if (const auto& report = answers_.report(id)) {
            ends_.to_controller(*report);
        } else if (!batching_.holds(id)) {
            answers_.repeat_complaint(id, now_ns);
        } else if (const ReportBatch* batch = batching_.of(id); batches.insert(batch).second) {
            send_batch(batch);
        }
    }
}

// --- messages from clients --------------------------------------------------------------------------------

void RelayState::take_message(const std::string& name, FromClient&& message, std::int64_t now_ns) {
    if (const auto* hello = std::get_if<Hello>(&message)) {
        introduce(name, *hello, now_ns);
        return;
    }
    if (const auto connection = connections_.at(name)) {
        std::visit([&](auto& it) { take_message(*connection, std::move(it), now_ns); }, message);
    }
}

void RelayState::introduce(const std::string& name, const Hello& hello, std::int64_t now_ns) {
    if (const auto known = connections_.at(name)) {
        if (welcome_) {
            welcome(*known);
        }
        return;
    }
    if (!connections_.newer(hello)) {
        return;
    }
    for (const Id id : hello.ids) {
        if (const auto earlier = connections_.of(id)) {
            left(*earlier);
        }
    }
    const auto connection = connections_.add(name, hello);
    for (const Id id : hello.ids) {
        joining_.add(id, now_ns);
    }
    if (welcome_) {
        welcome(*connection);
    }
    if (dismissed_) {
        dismiss(*connection, now_ns);
    }
}

// The welcome has no limit for silence: a client ends with its parent.
void RelayState::welcome(const ClientConnection& connection) {
    ends_.to_client(connection.name, encode(Welcome{.ids = {}, .run = welcome_->run, .silence_s = 0}));
}

void RelayState::dismiss(ClientConnection& connection, std::int64_t now_ns) {
    ends_.to_client(connection.name, encode(Quit{}));
    connection.quit_resend_ns = now_ns + kResendEveryNs;
    quit_resend_ns_ = std::min(quit_resend_ns_, connection.quit_resend_ns);
}

void RelayState::take_message(ClientConnection& connection, const Ack& ack, std::int64_t now_ns) {
    const auto step = step_of(ack.command);
    if (ack.epoch != commands_.epoch() || !step) {
        return;
    }
    bool is_new = false;
    for (const Id id : connections_.current_ids(connection, ack.ids)) {
        if (commands_.answer(id, *step, ack.number)) {
            answers_.acknowledge(id, *step, ack.number, now_ns);
            is_new = true;
        }
    }
    if (is_new) {
        complete(*step);
    }
}

void RelayState::take_message(ClientConnection& connection, const Ready& ready, std::int64_t now_ns) {
    if (ready.epoch != commands_.epoch()) {
        return;
    }
    bool is_new = false;
    for (const Id id : connections_.current_ids(connection, ready.ids)) {
        const bool late = commands_.late(id, Step::configure, ready.number);
        is_new = (!late && answers_.prove(id, ready, now_ns)) || is_new;
    }
    if (is_new) {
        answers_.send_complete_readiness();
    }
}

void RelayState::take_message(ClientConnection& connection, const Progress& progress, std::int64_t) {
    Progress it = progress;
    it.ids = connections_.current_ids(connection, progress.ids);
    if (it.epoch == commands_.epoch() && !it.ids.empty()) {
        ends_.to_controller(it);
    }
}

void RelayState::take_message(ClientConnection& connection, const TimeSeries& time_series,
                              std::int64_t now_ns) {
    const Ids ids = connections_.reported_ids(connection, time_series.ids);
    if (time_series.epoch == commands_.epoch() && !ids.empty()) {
        time_series_[answers_.cohort(ids.front())].add(time_series.seconds);
        time_series_at_ns_ = std::min(time_series_at_ns_, now_ns + kTimeSeriesWithinNs);
    }
}

// Sends the sums of the time series. They precede the reports, so a controller with the reports has
// them.
void RelayState::send_time_series() {
    if (time_series_at_ns_ == kNeverNs) {
        return;
    }
    time_series_at_ns_ = kNeverNs;
    for (std::size_t cohort = 0; cohort < time_series_.size(); ++cohort) {
        for (std::vector<SecondCounts>& part : parts_of(time_series_[cohort].take())) {
            TimeSeries it{.ids = ids_, .epoch = commands_.epoch()};
            (cohort == 0 ? it.seconds : it.cohort) = std::move(part);
            ends_.to_controller(it);
        }
    }
}

void RelayState::take_message(ClientConnection& connection, Report&& report, std::int64_t) {
    const Ids ids = connections_.reported_ids(connection, report.ids);
    if (report.epoch != commands_.epoch() || ids.size() != 1) {
        return;
    }
    if (!connection.ended && commands_.late(ids.front(), Step::stop, report.number)) {
        return;
    }
    if (auto& first = answers_.report(ids.front()); first == nullptr) {
        first = std::make_shared<const Report>(std::move(report));
        send_time_series();
        ends_.to_controller(*first);
    }
    if (!connection.ended) {
        commands_.answer(ids.front(), Step::stop, report.number);
    }
}

// The sums of a batch's histograms cannot be divided. So none of its reports is taken if one of the clients
// has reported before, in whatever process, or if its last `finish` is not the one of this answer: the
// clients without a report report once more when the command is resent.
void RelayState::take_batch(const std::string& name, const BatchHead& head, std::string&& payload,
                            std::int64_t now_ns) {
    const auto connection = connections_.at(name);
    if (!connection || head.epoch != commands_.epoch() || head.ids.empty() ||
        connections_.reported_ids(*connection, head.ids).size() != head.ids.size()) {
        return;
    }
    BatchPart part(head.ids, head.columns, std::move(payload));
    const std::uint32_t number = head.number.value_or(0);
    Ids answered;
    std::ranges::copy_if(head.ids, std::back_inserter(answered), [&](Id id) { return batching_.holds(id); });
    const auto late = [&](Id id) { return !connection->ended && commands_.late(id, Step::finish, number); };
    if (answered.empty() && std::ranges::none_of(head.ids, late)) {
        answered = head.ids;
        for (const ReportBatch* full : batching_.add(commands_.epoch(), std::move(part), now_ns)) {
            send_batch(full);
        }
    } else if (!connection->ended) {
        // A report stays in its batch, so the batch answers a repeated command.
        std::set<const ReportBatch*> again;
        for (const Id id : answered) {
            if (!late(id) && !commands_.answered(id, Step::finish) && again.insert(batching_.of(id)).second) {
                send_batch(batching_.of(id));
            }
        }
    }
    bool complete_now = connection->ended;  // no answer of an ended client is waited for
    for (const Id id : answered) {
        complete_now = (!connection->ended && commands_.answer(id, Step::finish, number)) || complete_now;
    }
    if (complete_now) {
        complete(Step::finish);
    }
}

// An error may answer a `configure` or a `finish`; one to an earlier command is late.
void RelayState::take_message(ClientConnection& connection, const Error& error, std::int64_t now_ns) {
    if (error.epoch != commands_.epoch() && error.epoch != 0) {
        return;
    }
    Ids ids = connections_.reported_ids(connection, error.ids);
    if (error.epoch == commands_.epoch() && error.number != 0 && !connection.ended) {
        std::erase_if(ids, [&](Id id) {
            return commands_.late(id, Step::configure, error.number) &&
                   commands_.late(id, Step::finish, error.number);
        });
    }
    if (ids.empty()) {
        return;
    }
    answers_.complain(ids, error, now_ns);
    if (error.epoch != commands_.epoch() || connection.ended) {
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
        answers_.send_complete_readiness();
    }
}

// --- joining and leaving ----------------------------------------------------------------------------------

void RelayState::take_exit(const ChildExit& exit, std::int64_t) {
    answers_.send_errors();  // its last error may be the reason
    const auto connection = connections_.of(exit.ids.front());
    if (connection && connection->incarnation <= exit.incarnation) {
        left(*connection);
    }
    ends_.to_controller(exit);
    if (!exit.replaced) {
        final_exits_.push_back(exit);
    }
    // This client may have been the last one without an answer.
    for (const Step step : kAllSteps) {
        complete(step);
    }
    answers_.send_complete_readiness();
}

// The client's report stays.
void RelayState::left(ClientConnection& connection) {
    for (const Id id : connection.ids) {
        answers_.left(id);
        commands_.left(id);
        joining_.left(id);
    }
    connections_.left(connection);
}

// If no client owes an answer, the gathered answers need not wait for more.
void RelayState::complete(Step step) {
    if (commands_.awaited(step)) {
        return;
    }
    answers_.send_acks(step);
    if (step == Step::configure || step == Step::finish) {
        answers_.send_errors();
    }
    if (step == Step::finish) {
        send_batch(batching_.flush(commands_.epoch()));
    }
}

// --- sending ----------------------------------------------------------------------------------------------

void RelayState::work(std::int64_t now_ns) {
    answers_.work(now_ns);
    if (now_ns >= time_series_at_ns_) {
        send_time_series();
    }
    if (now_ns >= batching_.due_ns()) {
        send_batch(batching_.flush(commands_.epoch()));
    }
    if (welcome_) {
        send_joined(joining_.take(now_ns));
    }
    for (const auto& [command, ids] : commands_.resends(now_ns)) {
        send_command(ids, command->body);
    }
    resend_quits(now_ns);
}

std::int64_t RelayState::due_ns() const {
    const std::int64_t due_ns = std::min(
        {answers_.due_ns(), batching_.due_ns(), commands_.due_ns(), quit_resend_ns_, time_series_at_ns_});
    return welcome_ ? std::min(due_ns, joining_.due_ns()) : due_ns;
}

void RelayState::end() {
    answers_.send_all();
    send_batch(batching_.flush(commands_.epoch()));
}

// Null: nothing is sent.
void RelayState::send_batch(const ReportBatch* batch) {
    if (batch != nullptr) {
        send_time_series();
        ends_.to_controller(batch->head, batch->payload);
    }
}

void RelayState::send_joined(const Ids& ids) {
    for (std::size_t first = 0; first < ids.size(); first += kJoinedOfMessage) {
        Joined joined;
        for (std::size_t i = first; i < std::min(first + kJoinedOfMessage, ids.size()); ++i) {
            const ClientConnection& connection = *connections_.of(ids[i]);
            joined.ids.push_back(ids[i]);
            joined.incarnations.push_back(connection.incarnation);
            joined.pids.push_back(connection.pid);
        }
        ends_.to_controller(joined);
    }
}

void RelayState::resend_quits(std::int64_t now_ns) {
    if (now_ns < quit_resend_ns_) {
        return;
    }
    quit_resend_ns_ = kNeverNs;
    for (const auto& [name, connection] : connections_.all()) {
        if (connection->quit_resend_ns <= now_ns) {
            dismiss(*connection, now_ns);
        }
        quit_resend_ns_ = std::min(quit_resend_ns_, connection->quit_resend_ns);
    }
}

// Each process gets the command once, for all of its clients among these.
void RelayState::send_command(const Ids& ids, const std::string& body) {
    for (auto first = ids.begin(); first != ids.end();) {
        const auto& connection = connections_.of(*first);
        const auto last =
            std::find_if(first, ids.end(), [&](Id id) { return connections_.of(id) != connection; });
        const Ids meant(first, last);
        const bool all = meant.size() == connection->ids.size();
        ends_.to_client(connection->name, all ? body : with_ids(body, meant));
        first = last;
    }
}

}  // namespace hydra
