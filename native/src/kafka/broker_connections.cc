#include "kafka/broker_connections.h"

#include "common/clock.h"

namespace hydra {
namespace {

constexpr std::size_t kMostDisconnections = 64;

rd_kafka_resp_err_t changed(rd_kafka_t*, std::int32_t broker, const char*, const char* name, int port,
                            const char* state, void* connections) {
    static_cast<BrokerConnections*>(connections)->change(broker, {name, port}, state, monotonic_ns());
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

}  // namespace

void BrokerConnections::watch(rd_kafka_conf_t* conf) {
    {
        const std::lock_guard lock(mutex_);
        watching_ = true;
        connections_.clear();
    }
    rd_kafka_conf_interceptor_add_on_new(
        conf, "hydra",
        [](rd_kafka_t* kafka, const rd_kafka_conf_t*, void* connections, char*, std::size_t) {
            return rd_kafka_interceptor_add_on_broker_state_change(kafka, "hydra", changed, connections);
        },
        this);
}

void BrokerConnections::end() {
    const std::lock_guard lock(mutex_);
    watching_ = false;
}

void BrokerConnections::begin_step() {
    const std::lock_guard lock(mutex_);
    disconnections_.clear();
    for (auto& [address, connection] : connections_) {
        connection.lost.reset();
    }
}

std::vector<Disconnection> BrokerConnections::disconnections() const {
    const std::lock_guard lock(mutex_);
    return disconnections_;
}

void BrokerConnections::change(std::int32_t broker, std::pair<std::string, int> address,
                               std::string_view state, std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    if (!watching_) {
        return;
    }
    Connection& it = connections_[std::move(address)];
    // The connection stays when the library learns the broker's id, or logs in again.
    if (state == "UP" || state == "UPDATE" || state == "REAUTH") {
        it.up = true;
        if (it.lost) {
            disconnections_[*std::exchange(it.lost, std::nullopt)].back_ns = now_ns;
        }
    } else if (std::exchange(it.up, false) && broker >= 0) {
        if (disconnections_.size() < kMostDisconnections) {
            disconnections_.push_back({.lost_ns = now_ns});
        }
        // The last one reaches to the end of all further ones.
        disconnections_.back().back_ns = 0;
        it.lost = disconnections_.size() - 1;
    } else if (it.lost && state == "CONNECT") {
        ++disconnections_[*it.lost].attempts;
    }
}

}  // namespace hydra
