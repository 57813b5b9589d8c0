#include "nats/connection.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "common/clock.h"
#include "nats/access.h"

namespace hydra {
namespace {

// A server that does not read keeps the client from the control channel. A server on two cores that serves
// 2,000 slow consumers reads nothing for more than 12 s. The controller expects a publisher's report within
// 25 s: if a write behind the last message has to wait as long again, that limit ends the step.
constexpr std::int64_t kWriteWithinMs = 20'000;
// The longest time that a publisher waits for answers.
constexpr std::int64_t kPingWithinMs = 10'000;
constexpr int kForever = -1;
// libnats' defaults: the wait between two attempts to reconnect, and the range of what chance adds to it.
constexpr std::int64_t kReconnectWaitMs = 2'000;
constexpr std::int64_t kJitterMs = 100;
constexpr std::int64_t kTlsJitterMs = 1'000;
constexpr std::size_t kMostDisconnections = 64;

std::string joined(const std::vector<std::string>& servers) {
    std::string all;
    for (const std::string& server : servers) {
        all += (all.empty() ? "" : ",") + server;
    }
    return all;
}

}  // namespace

void NatsConnection::Events::lose(natsConnection* connection) {
    const char* last = nullptr;
    const natsStatus error = natsConnection_GetLastError(connection, &last);
    ++disconnects;
    const std::lock_guard lock(mutex);
    if (lost_why.empty()) {
        const std::string text = last == nullptr ? "" : last;
        lost_why = !text.empty()      ? text
                   : error == NATS_OK ? "no reason was given"
                                      : natsStatus_GetText(error);
    }
    if (disconnections.size() < kMostDisconnections) {
        disconnections.push_back({.lost_ns = monotonic_ns(), .attempts = 1});
    } else {
        disconnections.back().back_ns = 0;
    }
}

void NatsConnection::Events::come_back() {
    const std::lock_guard lock(mutex);
    if (!disconnections.empty()) {
        disconnections.back().back_ns = monotonic_ns();
    }
}

// Called when all servers were tried in vain, with the number of times that they were.
std::int64_t NatsConnection::Events::wait_ms(int attempts) {
    const std::lock_guard lock(mutex);
    if (!disconnections.empty()) {
        disconnections.back().attempts = static_cast<std::uint64_t>(attempts) + 1;
    }
    return kReconnectWaitMs + monotonic_ns() / 1000 % (has_tls ? kTlsJitterMs : kJitterMs);
}

NatsConnection::NatsConnection() : events_(std::make_shared<Events>()) {}

NatsConnection::~NatsConnection() {
    close();
}

bool NatsConnection::reaches(const NatsStep& step) const {
    return connected() && step.servers == access_.servers && step.login == access_.login &&
           step.tls == access_.tls;
}

bool NatsConnection::open(const NatsStep& step, bool one_thread, std::int64_t within_ms) {
    if (reaches(step)) {
        return false;
    }
    close();
    access_ = step;
    const std::vector<std::string>& servers = access_.servers;
    const NatsAccess access(access_);
    natsOptions* const made = access.options();
    std::vector<std::string> urls;
    std::vector<const char*> pointers;
    for (const std::string& server : servers) {
        urls.push_back("nats://" + server);
    }
    for (const std::string& url : urls) {
        pointers.push_back(url.c_str());
    }
    nats_check(natsOptions_SetServers(made, pointers.data(), static_cast<int>(pointers.size())),
               "the servers " + joined(servers));
    natsOptions_SetTimeout(made, within_ms);
    natsOptions_SetMaxReconnect(made, kForever);
    natsOptions_SetWriteDeadline(made, kWriteWithinMs);
    natsOptions_UseGlobalMessageDelivery(made, one_thread);
    events_->has_tls = access_.tls.has_value();
    auto* events = new Shared(events_);
    natsOptions_SetErrorHandler(
        made,
        [](natsConnection* connection, natsSubscription*, natsStatus error, void* closure) {
            if (error == NATS_SLOW_CONSUMER) {
                ++(*static_cast<Shared*>(closure))->slow_consumers;
            } else if (error == NATS_NOT_PERMITTED) {
                const char* last = nullptr;
                natsConnection_GetLastError(connection, &last);
                Events& it = **static_cast<Shared*>(closure);
                const std::lock_guard lock(it.mutex);
                if (it.not_permitted.empty()) {
                    it.not_permitted = last == nullptr || *last == '\0' ? natsStatus_GetText(error) : last;
                }
            }
        },
        events);
    natsOptions_SetDisconnectedCB(
        made,
        [](natsConnection* connection, void* closure) { (*static_cast<Shared*>(closure))->lose(connection); },
        events);
    natsOptions_SetReconnectedCB(
        made, [](natsConnection*, void* closure) { (*static_cast<Shared*>(closure))->come_back(); }, events);
    natsOptions_SetCustomReconnectDelay(
        made,
        [](natsConnection*, int attempts, void* closure) {
            return (*static_cast<Shared*>(closure))->wait_ms(attempts);
        },
        events);
    // The last callback of a connection.
    natsOptions_SetClosedCB(
        made, [](natsConnection*, void* closure) { delete static_cast<Shared*>(closure); }, events);
    errno = 0;
    const natsStatus status = natsConnection_Connect(&connection_, made);
    const int error = errno;  // the library passes on neither its number nor its text
    if (status != NATS_OK) {
        connection_ = nullptr;
        delete events;
        throw TransportError("NATS at " + joined(servers) +
                             nats_failure(status, error, step.tls.has_value()));
    }
    connected_ns_ = monotonic_ns();
    return true;
}

void NatsConnection::close() {
    if (connection_ == nullptr) {
        return;
    }
    // Errors while it closes do not belong to the step.
    auto counted = std::make_shared<Events>();
    counted->slow_consumers = events_->slow_consumers.load();
    counted->disconnects = events_->disconnects.load();
    counted->disconnections = disconnections();
    counted->lost_why = losses().why;
    counted->not_permitted = not_permitted();
    events_ = std::move(counted);
    if (asked_.valid()) {
        natsConnection_Close(connection_);  // ends its wait
        asked_.wait();
        asked_ = {};
    }
    natsConnection_Destroy(connection_);
    connection_ = nullptr;
    ended_.clear();
}

bool NatsConnection::connected() const {
    return connection_ != nullptr && natsConnection_Status(connection_) == NATS_CONN_STATUS_CONNECTED;
}

bool NatsConnection::flush(std::int64_t timeout_ms) {
    if (connection_ == nullptr || natsConnection_FlushTimeout(connection_, timeout_ms) != NATS_OK) {
        return false;
    }
    // The thread that read the answer has handled every message before it.
    std::erase_if(ended_, [](const auto& it) { return !natsSubscription_IsValid(it.get()); });
    return true;
}

// The library has no ping whose answer can be awaited later, so a thread waits.
bool NatsConnection::flush(std::uint64_t written, std::int64_t timeout_ms) {
    const std::int64_t deadline_ns = monotonic_ns() + timeout_ms * kMillisecondNs;
    while (connection_ != nullptr) {
        if (!asked_.valid()) {
            written_before_ = written;
            asked_ = std::async(std::launch::async, [connection = connection_] {
                const bool answered = natsConnection_FlushTimeout(connection, kPingWithinMs) == NATS_OK;
                nats_ReleaseThreadMemory();
                return answered;
            });
        }
        const std::int64_t left_ns = std::max<std::int64_t>(deadline_ns - monotonic_ns(), 0);
        if (asked_.wait_for(std::chrono::nanoseconds(left_ns)) != std::future_status::ready ||
            !asked_.get()) {
            return false;
        }
        if (written_before_ == written) {
            return true;
        }
    }
    return false;
}

void NatsConnection::end(natsSubscription* subscription) {
    // This asks the server, so it is not tried without a connection. It also deletes a stream's consumer.
    if (connected()) {
        natsSubscription_Unsubscribe(subscription);
    }
    ended_.emplace_back(subscription);
}

void NatsConnection::begin_step() {
    events_->slow_consumers = 0;
    events_->disconnects = 0;
    const std::lock_guard lock(events_->mutex);
    events_->disconnections.clear();
    events_->lost_why.clear();
    events_->not_permitted.clear();
}

ConnectionLosses NatsConnection::losses() const {
    const std::lock_guard lock(events_->mutex);
    return {events_->disconnects, events_->lost_why};
}

std::string NatsConnection::not_permitted() const {
    const std::lock_guard lock(events_->mutex);
    return events_->not_permitted;
}

std::vector<Disconnection> NatsConnection::disconnections() const {
    const std::lock_guard lock(events_->mutex);
    return events_->disconnections;
}

NatsTrouble NatsConnection::trouble() const {
    return {.slow_consumers = events_->slow_consumers, .dropped = 0, .disconnects = events_->disconnects};
}

}  // namespace hydra
