#include "common/subscriber.h"

#include <malloc.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "common/batch_columns.h"
#include "common/clock.h"

namespace hydra {
namespace {

constexpr std::uint64_t kControlToken = UINT64_MAX;
constexpr std::uint64_t kConnectorToken = UINT64_MAX - 1;
// How long an attempt may take beyond the time at which its client gives up, before it counts as timed out.
constexpr std::int64_t kSlackNs = kSecondNs / 2;
// How long a client without a connection waits at least until it looks for what is due.
constexpr std::int64_t kApartNs = kSecondNs / 10;
// Number of different moments in the interval at which processes send their time series.
constexpr std::int64_t kTurns = 97;

// Why no client can count the step's traffic, or "".
std::string unusable(const Configure& command) {
    const std::string why = command.traffic ? no_traffic(*command.traffic) : "";
    if (why.empty() && topics_of(command) > 1 && !command.group.empty()) {
        return "the members of a consumer group cannot share several topics";
    }
    return why;
}

}  // namespace

Subscriber::Subscriber(ControlClient& control, std::int64_t gather_ns,
                       const std::function<std::unique_ptr<SubscriberTransport>()>& open)
    : control_(control), gather_ns_(gather_ns), open_(open) {
    clients_.reserve(control.ids().size());
    for (const Id id : control.ids()) {
        clients_.push_back({.id = id, .transport = open()});
    }
    control_.watch(&waiter_, kControlToken);
}

Subscriber::~Subscriber() {
    control_.watch(nullptr, 0);
}

void Subscriber::run() {
    bool gathers = false;
    while (obey_all()) {
        const std::int64_t now_ns = monotonic_ns();
        take_all(now_ns);
        if (now_ns >= due_ns_) {
            do_what_is_due(now_ns);
        }
        if (now_ns >= connect_at_ns_) {
            connect_all(now_ns);
        }
        if (now_ns >= tend_at_ns_) {
            tend_all(now_ns);
        }
        send_ready();
        if (now_ns >= time_series_at_ns_ || (time_series_at_ns_ != kNeverNs && !reporting_.empty())) {
            send_time_series(now_ns);
        }
        send_reports();
        if (clients_.size() > 1 && !reporting_.empty() && std::ranges::all_of(clients_, between_steps)) {
            malloc_trim(0);  // messages with hundreds of reports have taken as much memory as all clients
        }
        reporting_.clear();
        const bool at_once = !queue_.empty() || control_.stirred();
        const std::int64_t until_ns = std::min({due_ns_, tend_at_ns_, time_series_at_ns_, connect_at_ns_});
        if (gathers && !at_once) {
            sleep_until_ns(std::min(until_ns, now_ns + gather_ns_));
        }
        const std::span<const Waiter::Wake> wakes = waiter_.wait(at_once ? 0 : until_ns);
        // If more wakes are waiting, the next wait must not gather.
        gathers = gather_ns_ > 0 && !wakes.empty() && wakes.size() < Waiter::kMostWakes;
        for (const Waiter::Wake& wake : wakes) {
            if (wake.token == kControlToken) {
                control_.stir();
            } else if (wake.token == kConnectorToken) {
                take_connections();
            } else {
                arrived(clients_[wake.token], wake.ended);
            }
        }
    }
}

// --- commands ------------------------------------------------------------------------------------------

// False: the client has to quit.
bool Subscriber::obey_all() {
    while (const auto message = control_.receive()) {
        if (std::holds_alternative<Quit>(*message)) {
            return false;
        }
        std::visit([this](const auto& command) { obey(command); }, *message);
        due_ns_ = 0;  // a command may have changed what is due next
    }
    return true;
}

Subscriber::Client& Subscriber::client(Id id) {
    return *std::ranges::lower_bound(clients_, id, {}, &Client::id);
}

// Calls `each` with the named clients whose current step is of this epoch.
template <typename Each>
void Subscriber::for_step(const Ids& named, std::uint32_t epoch, Each each) {
    for (const Id id : control_.own_ids(named)) {
        Client& it = client(id);
        if (it.step != nullptr && it.step->epoch() == epoch) {
            each(it);
        }
    }
}

void Subscriber::obey(const Configure& command) {
    Ids acknowledged;
    if (command.epoch > time_series_epoch_) {
        time_series_epoch_ = command.epoch;
        time_series_every_ns_ = to_ns(command.course_s);
        time_series_at_ns_ = kNeverNs;
        time_series_ = {};
    }
    std::shared_ptr<SharedTraffic> traffic;
    if (const std::string why = unusable(command); !why.empty()) {
        control_.refuse(control_.own_ids(command.ids), command, why);
        return;
    }
    if (command.traffic) {
        traffic = std::make_shared<SharedTraffic>(*command.traffic);
    }
    for (const Id id : control_.own_ids(command.ids)) {
        configure(client(id), command, traffic, acknowledged);
    }
    std::erase_if(acknowledged, [&](Id id) { return !settle(client(id), command); });
    tend_at_ns_ = 0;  // the new settings may change the times
    if (!acknowledged.empty()) {
        control_.acknowledge(std::move(acknowledged), command);
    }
}

void Subscriber::configure(Client& client, const Configure& command,
                           const std::shared_ptr<SharedTraffic>& traffic, Ids& acknowledged) {
    if (command.epoch < client.epoch) {
        return;
    }
    client.cohort = command.cohort;
    if (client.step == nullptr || command.epoch > client.epoch) {
        // Even if the next lines fail, the last step has ended: its connection may be closed.
        client.epoch = command.epoch;
        client.step.reset();
        // If its report was asked for again, the controller no longer waits for it.
        std::erase(reporting_, &client);
        client.report.reset();
        unwatch(client);
        client.connection.reset();
        client.trying = false;
        ++client.attempt;
        if (command.connect) {
            client.connection = std::make_unique<SubscriberConnection>(*command.connect, client.id);
            client.command = std::make_shared<const Configure>(command);
            connect_at_ns_ = 0;
        }
        const bool later = client.connection && !client.connection->connected();
        try {
            if (later) {
                client.transport = fresh_transport(client);
            } else {
                client.transport->choose(topic_filter(command, client.id));
                client.transport->configure(command);
            }
        } catch (const TransportError& e) {
            control_.refuse({client.id}, command, e.what());
            return;
        }
        std::unique_ptr<TopicAccount> topics;
        if (traffic != nullptr && (traffic->traffic()->topics > 1 || traffic->traffic()->keys > 0)) {
            topics = std::make_unique<TopicAccount>(traffic, client.id, command);
        }
        client.step =
            std::make_unique<SubscriberStep>(command, *client.transport, client.latency, std::move(topics));
        if (!later) {
            watch_anew(client);
        }
    } else if (client.step->proven()) {
        control_.send(
            Ready{.ids = {client.id}, .epoch = command.epoch, .number = command.number, .endpoint = ""});
    }
    client.configured = command.number;
    acknowledged.push_back(client.id);
}

bool Subscriber::settle(Client& client, const Configure& command) {
    if (client.connection && !client.connection->connected()) {
        return true;  // it has nothing to wait for yet
    }
    try {
        client.transport->settle();
        return true;
    } catch (const TransportError& e) {
        client.step.reset();
        unwatch(client);
        control_.refuse({client.id}, command, e.what());
        return false;
    }
}

void Subscriber::obey(const Start& command) {
    Ids started;
    for_step(command.ids, command.epoch, [&](Client& client) {
        client.step->start(command);
        started.push_back(client.id);
    });
    if (!started.empty() && time_series_every_ns_ > 0 && time_series_at_ns_ == kNeverNs) {
        // At different times in each process: all at once would delay the messages.
        const auto turn = static_cast<std::int64_t>(control_.ids().front() % kTurns);
        time_series_at_ns_ = monotonic_ns() + time_series_every_ns_ + time_series_every_ns_ * turn / kTurns;
    }
    if (!started.empty()) {
        control_.acknowledge(std::move(started), command);
    }
}

void Subscriber::obey(const Stop& command) {
    Ids stopped;
    for_step(command.ids, command.epoch, [&](Client& client) {
        client.step->stop(command.stop_at_ns);
        stopped.push_back(client.id);
    });
    if (!stopped.empty()) {
        control_.acknowledge(std::move(stopped), command);
    }
}

void Subscriber::obey(const Finish& command) {
    for_step(command.ids, command.epoch, [&](Client& client) {
        client.finished = command.number;
        if (client.report) {
            reporting_.push_back(&client);
            return;
        }
        try {
            if (client.step->finish(command, monotonic_ns())) {
                watch_anew(client);
            }
        } catch (const TransportError& e) {
            control_.refuse({client.id}, command, e.what());
            return;
        }
        if (client.more) {
            queue(client);  // a slow reader reads freely from here on
        }
    });
}

// --- connecting ----------------------------------------------------------------------------------------

// Begins the attempts that are due, and ends those that take too long.
void Subscriber::connect_all(std::int64_t now_ns) {
    connect_at_ns_ = kNeverNs;
    for (Client& client : clients_) {
        if (!client.connection || client.step == nullptr || client.report || client.step->draining()) {
            continue;
        }
        SubscriberConnection& connection = *client.connection;
        const std::int64_t until_ns = connection.until_ns();
        if (client.trying) {
            const std::int64_t late_ns = until_ns == kNeverNs ? kNeverNs : until_ns + kSlackNs;
            if (now_ns >= late_ns) {
                client.trying = false;
                ++client.attempt;
                connection.give_up(true);
            }
        } else if (now_ns >= connection.next_ns()) {
            connect(client, now_ns);
        }
        if (!client.trying) {
            connect_at_ns_ = std::min(connect_at_ns_, connection.next_ns());
        } else if (until_ns != kNeverNs) {
            connect_at_ns_ = std::min(connect_at_ns_, until_ns + kSlackNs);
        }
    }
}

// A transport without a connection, for the client's configuration.
std::unique_ptr<SubscriberTransport> Subscriber::fresh_transport(const Client& client) const {
    std::unique_ptr<SubscriberTransport> transport = open_();
    transport->choose(topic_filter(*client.command, client.id));
    return transport;
}

void Subscriber::connect(Client& client, std::int64_t now_ns) {
    std::size_t most = 0;
    try {
        most = client.transport->connects_aside(*client.command);
    } catch (const TransportError& e) {
        client.connection->give_up(false);
        control_.complain({.ids = {client.id}, .epoch = client.epoch, .message = e.what()});
        return;
    }
    if (most > 0) {
        if (connector_ == nullptr) {
            connector_ = std::make_unique<Connector>();
            waiter_.add(connector_->fd(), kConnectorToken);
        }
        client.trying = true;
        auto transport = fresh_transport(client);
        transport->inherit(*client.transport);
        connector_->start({.client = static_cast<std::size_t>(&client - clients_.data()),
                           .number = ++client.attempt,
                           .transport = std::move(transport),
                           .command = client.command,
                           .until_ns = client.connection->until_ns()},
                          most);
        return;
    }
    client.connection->begin(now_ns);
    try {
        client.transport->connect(*client.command, SubscriberConnection::kAttemptNs);
        client.transport->settle();
        connected(client, monotonic_ns());
    } catch (const TransportError& e) {
        client.connection->fail(monotonic_ns(), e.what());
    }
}

void Subscriber::take_connections() {
    for (Connector::Attempt& attempt : connector_->take()) {
        Client& client = clients_[attempt.client];
        if (attempt.number != client.attempt || !client.trying || client.step == nullptr) {
            continue;  // its client does not wait for it any more
        }
        client.trying = false;
        if (attempt.began_ns == 0) {
            client.connection->give_up(false);
            continue;
        }
        client.connection->begin(attempt.began_ns);
        if (attempt.failed) {
            client.connection->fail(attempt.ended_ns, attempt.why);
            connect_at_ns_ = std::min(connect_at_ns_, client.connection->next_ns());
            continue;
        }
        client.transport = std::move(attempt.transport);
        client.step->moves_to(*client.transport);
        connected(client, attempt.ended_ns);
    }
}

void Subscriber::connected(Client& client, std::int64_t now_ns) {
    client.connection->succeed(now_ns, client.transport->phases());
    watch_anew(client);
    tend_at_ns_ = 0;
}

// Notes a connection that was lost.
void Subscriber::look_at_connection(Client& client, std::int64_t now_ns) {
    if (client.connection->connected() && client.transport->lost()) {
        unwatch(client);
        client.connection->lose(now_ns);
        connect_at_ns_ = 0;
    }
}

// --- arrivals ------------------------------------------------------------------------------------------

void Subscriber::arrived(Client& client, bool ended) {
    client.more = true;
    if (ended) {
        client.transport->ended();
    }
    if (!between_steps(client)) {
        queue(client);
        return;
    }
    try {
        client.transport->arrived_between_steps();
    } catch (const TransportError&) {
        // The next step will fail on it.
    }
    tend_at_ns_ = std::min(tend_at_ns_, client.transport->tend_at_ns());
}

// After its report a client reads no messages from the system until the next `configure` command.
bool Subscriber::between_steps(const Client& client) {
    return client.step == nullptr || client.report != nullptr;
}

void Subscriber::queue(Client& client) {
    if (!client.queued && !between_steps(client)) {
        client.queued = true;
        queue_.push_back(&client);
    }
}

void Subscriber::unwatch(Client& client) {
    waiter_.remove(client.watched_fd);
    client.watched_fd = -1;
    client.transport->unwatch();
    client.more = false;
}

// Data that arrived before the descriptor was watched is read at once.
void Subscriber::watch_anew(Client& client) {
    const auto token = static_cast<std::uint64_t>(&client - clients_.data());
    client.watched_fd = client.transport->wake_fd();
    if (client.watched_fd >= 0) {
        waiter_.add(client.watched_fd, token);
    }
    client.transport->watch(waiter_, token);
    client.more = true;
    queue(client);
}

// Takes one batch for each client that may have arrivals.
void Subscriber::take_all(std::int64_t now_ns) {
    if (queue_.empty()) {
        return;
    }
    turn_.swap(queue_);
    for (Client* it : turn_) {
        it->queued = false;
        take(*it, now_ns);
    }
    turn_.clear();
}

void Subscriber::take(Client& client, std::int64_t now_ns) {
    if (client.step == nullptr || client.step->failed()) {
        return;  // it has no step, or a failed one, since it was queued
    }
    const std::size_t limit = client.step->allowance(now_ns);
    if (limit > 0) {
        batch_.reset(limit);
        try {
            client.more = client.step->take(batch_, time_series_[client.cohort]);
        } catch (const TransportError& e) {
            fail(client, e);
        }
        if (client.connection) {
            if (!batch_.runs().empty()) {
                client.connection->receive(monotonic_ns());
            }
            look_at_connection(client, monotonic_ns());
        }
        tend_at_ns_ = std::min(tend_at_ns_, client.transport->tend_at_ns());
        report_progress(client, now_ns);
    }
    if (client.more && client.step->allowance(now_ns) > 0) {
        queue(client);
    } else {
        due_ns_ = std::min(due_ns_, client.step->next_ns(now_ns));
    }
}

// --- what is due ---------------------------------------------------------------------------------------

void Subscriber::do_what_is_due(std::int64_t now_ns) {
    due_ns_ = kNeverNs;
    for (Client& client : clients_) {
        if (client.step == nullptr || client.report) {
            continue;
        }
        // A client without a connection has none to end: it does that later.
        const bool apart = client.connection && !client.connection->connected();
        if (!apart && client.step->reconnect_due(now_ns)) {
            reconnect(client);
        }
        if (!apart) {
            follow_impairments(client, now_ns);
        }
        if (client.more && client.step->allowance(now_ns) > 0) {
            queue(client);
        }
        report_progress(client, now_ns);
        due_ns_ = std::min(due_ns_, std::max(client.step->next_ns(now_ns), apart ? now_ns + kApartNs : 0));
    }
}

void Subscriber::tend_all(std::int64_t now_ns) {
    tend_at_ns_ = kNeverNs;
    for (Client& client : clients_) {
        try {
            tend_at_ns_ = std::min(tend_at_ns_, client.transport->tend(now_ns, between_steps(client)));
        } catch (const TransportError& e) {
            if (!between_steps(client) && !client.step->failed()) {
                fail(client, e);
            }
        }
        if (client.connection && !between_steps(client)) {
            look_at_connection(client, now_ns);  // a ping without an answer wakes no client
        }
    }
}

void Subscriber::follow_impairments(Client& client, std::int64_t now_ns) {
    const Impairments::Change change = client.step->impairment_change(now_ns);
    if (change == Impairments::Change::none) {
        return;
    }
    tend_at_ns_ = 0;  // the connection changes
    unwatch(client);
    try {
        if (change == Impairments::Change::leave) {
            client.step->leave();
        } else {
            client.step->come_back();
            watch_anew(client);
        }
    } catch (const TransportError& e) {
        fail(client, e);
    }
}

void Subscriber::reconnect(Client& client) {
    tend_at_ns_ = 0;  // the connection changes
    unwatch(client);
    try {
        client.step->reconnect();
        watch_anew(client);
    } catch (const TransportError& e) {
        fail(client, e);
    }
}

// A process with one client ends with it, and is replaced. If it has several clients, the others continue:
// the client sends its error, and later its report when it is asked.
void Subscriber::fail(Client& client, const TransportError& error) {
    if (clients_.size() == 1) {
        throw error;
    }
    unwatch(client);
    client.step->fail();
    control_.complain({.ids = {client.id}, .epoch = client.epoch, .message = error.what()});
}

void Subscriber::report_progress(Client& client, std::int64_t now_ns) {
    SubscriberStep& step = *client.step;
    if (step.newly_ready()) {
        const std::pair of{step.epoch(), client.configured};
        if (ready_for_ != of) {
            send_ready();
        }
        ready_for_ = of;
        ready_.push_back(client.id);
    }
    if (const auto progress_ns = step.progress_due(now_ns)) {
        control_.send(Progress{
            .ids = {client.id}, .epoch = step.epoch(), .messages = step.messages(), .time_ns = *progress_ns});
    }
    if (step.drained(now_ns)) {
        SubscriberReport body = step.report();
        const std::vector<Disconnection> lost = client.transport->disconnections();
        if (client.connection || !lost.empty()) {
            nlohmann::json object = body.system ? body.system.json() : nlohmann::json::object();
            // Without times of the step, only the differences between these times mean something.
            const SubscriberConnection unmeasured(Connect{}, client.id);
            object["connection"] = (client.connection ? *client.connection : unmeasured)
                                       .report(lost, client.transport->local_limit());
            body.system = SystemObject(std::move(object));
        }
        // The process's CPU time is the sum over its clients.
        body.usage.cpu_user_s /= static_cast<double>(clients_.size());
        body.usage.cpu_system_s /= static_cast<double>(clients_.size());
        client.report = std::make_unique<SubscriberReport>(std::move(body));
        client.reported = false;
        reporting_.push_back(&client);
    }
}

// Sends the time series that was not sent yet. A client that reports has sent its own before.
void Subscriber::send_time_series(std::int64_t now_ns) {
    bool is_continuing = false;
    std::array<Ids, 2> reporters;
    for (const Client& client : clients_) {
        is_continuing = is_continuing || !between_steps(client);
        if (reporters[client.cohort].empty()) {
            reporters[client.cohort].push_back(client.id);  // one id is enough: the relay only needs the sum
        }
    }
    for (std::size_t cohort = 0; cohort < reporters.size(); ++cohort) {
        for (std::vector<SecondCounts>& part : parts_of(time_series_[cohort].take())) {
            control_.send(TimeSeries{
                .ids = reporters[cohort], .epoch = time_series_epoch_, .seconds = std::move(part)});
        }
    }
    time_series_at_ns_ = is_continuing || !reporting_.empty() ? now_ns + time_series_every_ns_ : kNeverNs;
}

// Sends `ready` for all clients that have become ready in a turn, in one message.
void Subscriber::send_ready() {
    if (!ready_.empty()) {
        std::ranges::sort(ready_);
        const auto [epoch, number] = ready_for_;
        control_.send(
            Ready{.ids = std::exchange(ready_, {}), .epoch = epoch, .number = number, .endpoint = ""});
    }
}

// Sends the reports in as few batches as possible. All reports of a batch answer one command, and all were
// sent before or none: a relay takes all of them or none.
void Subscriber::send_reports() {
    const auto kind = [](const Client* it) { return std::tuple(it->reported, it->epoch, it->finished); };
    std::ranges::sort(reporting_, {}, [&](const Client* it) { return std::tuple(kind(it), it->id); });
    reporting_.erase(std::ranges::unique(reporting_).begin(), reporting_.end());
    BatchBuilder builder;
    for (auto next = reporting_.begin(); next != reporting_.end();) {
        const auto first = next;
        do {
            builder.add((*next)->id, *(*next)->report, (*next)->cohort);
            ++next;
        } while (next != reporting_.end() && kind(*next) == kind(*first) &&
                 builder.bytes() + batch_bytes(*(*next)->report) <= kBatchBytes);
        BatchColumns it = builder.take();
        control_.send({.ids = std::move(it.ids),
                       .epoch = (*first)->epoch,
                       .number = (*first)->finished,
                       .columns = std::move(it.columns)},
                      it.payload);
    }
    for (Client* client : reporting_) {
        client->reported = true;
    }
}

}  // namespace hydra
