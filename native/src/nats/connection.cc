#include "nats/connection.h"

#include "nats/access.h"

namespace hydra {
namespace {

constexpr std::int64_t kConnectTimeoutMs = 5'000;
// A server that does not read keeps the client from the control channel. A server that waits for a slow
// consumer does so for up to a second at a time.
constexpr std::int64_t kWriteWithinMs = 5'000;
constexpr int kForever = -1;

std::string joined(const std::vector<std::string>& servers) {
    std::string all;
    for (const std::string& server : servers) {
        all += (all.empty() ? "" : ",") + server;
    }
    return all;
}

}  // namespace

NatsConnection::NatsConnection() : events_(std::make_shared<Events>()) {}

NatsConnection::~NatsConnection() {
    close();
}

bool NatsConnection::reaches(const NatsStep& step) const {
    return connected() && step.servers == access_.servers && step.login == access_.login &&
           step.tls == access_.tls;
}

bool NatsConnection::open(const NatsStep& step, bool one_thread) {
    if (reaches(step)) {
        return false;
    }
    close();
    access_ = step;
    const std::vector<std::string>& servers = access_.servers;
    natsOptions* made = nullptr;
    nats_check(natsOptions_Create(&made), "libnats");
    const NatsOptionsHandle options(made);
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
    set_access(made, access_);
    natsOptions_SetTimeout(made, kConnectTimeoutMs);
    natsOptions_SetMaxReconnect(made, kForever);
    natsOptions_SetWriteDeadline(made, kWriteWithinMs);
    natsOptions_UseGlobalMessageDelivery(made, one_thread);
    auto* events = new Shared(events_);
    natsOptions_SetErrorHandler(
        made,
        [](natsConnection*, natsSubscription*, natsStatus error, void* closure) {
            if (error == NATS_SLOW_CONSUMER) {
                ++(*static_cast<Shared*>(closure))->slow_consumers;
            }
        },
        events);
    natsOptions_SetDisconnectedCB(
        made, [](natsConnection*, void* closure) { ++(*static_cast<Shared*>(closure))->disconnects; },
        events);
    // The last callback of a connection.
    natsOptions_SetClosedCB(
        made, [](natsConnection*, void* closure) { delete static_cast<Shared*>(closure); }, events);
    const natsStatus status = natsConnection_Connect(&connection_, made);
    if (status != NATS_OK) {
        connection_ = nullptr;
        delete events;
        throw TransportError("NATS at " + joined(servers) + nats_failure(status, step.tls.has_value()));
    }
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
    events_ = std::move(counted);
    natsConnection_Destroy(connection_);
    connection_ = nullptr;
}

bool NatsConnection::connected() const {
    return connection_ != nullptr && natsConnection_Status(connection_) == NATS_CONN_STATUS_CONNECTED;
}

bool NatsConnection::flush(std::int64_t timeout_ms) const {
    return connection_ != nullptr && natsConnection_FlushTimeout(connection_, timeout_ms) == NATS_OK;
}

void NatsConnection::begin_step() {
    events_->slow_consumers = 0;
    events_->disconnects = 0;
}

NatsTrouble NatsConnection::trouble() const {
    return {.slow_consumers = events_->slow_consumers, .dropped = 0, .disconnects = events_->disconnects};
}

}  // namespace hydra
