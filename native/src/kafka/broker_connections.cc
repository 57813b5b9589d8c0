#include "kafka/broker_connections.h"

#include "common/clock.h"
#include "common/local_limits.h"

namespace hydra {
namespace {

constexpr std::size_t kMostDisconnections = 64;
// The longest time since the last use of a connection that counts as in use: no broker closes it as idle.
constexpr std::int64_t kInUseNs = 500 * kMillisecondNs;
constexpr std::int16_t kProduce = 0;  // in Kafka's protocol

rd_kafka_resp_err_t changed(rd_kafka_t*, std::int32_t broker, const char*, const char* name, int port,
                            const char* state, void* connections) {
    static_cast<BrokerConnections*>(connections)->change(broker, {name, port}, state, monotonic_ns());
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t answered(rd_kafka_t*, int, const char*, std::int32_t broker, std::int16_t, std::int16_t,
                             std::int32_t, std::size_t, std::int64_t, rd_kafka_resp_err_t,
                             void* connections) {
    static_cast<BrokerConnections*>(connections)->received(broker, monotonic_ns());
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

}  // namespace

void BrokerConnections::watch(rd_kafka_conf_t* conf, bool acknowledges) {
    {
        const std::lock_guard lock(mutex_);
        watching_ = true;
        acknowledges_ = acknowledges;
        connections_.clear();
        uses_.clear();
    }
    rd_kafka_conf_interceptor_add_on_new(
        conf, "hydra-connections",
        [](rd_kafka_t* kafka, const rd_kafka_conf_t*, void* it, char*, std::size_t) {
            const char* const name = "hydra-connections";
            rd_kafka_interceptor_add_on_request_sent(
                kafka, name,
                [](rd_kafka_t*, int, const char*, std::int32_t broker, std::int16_t api, std::int16_t,
                   std::int32_t, std::size_t, void* opaque) {
                    auto& connections = *static_cast<BrokerConnections*>(opaque);
                    connections.sent(broker, connections.acknowledges_ || api != kProduce, monotonic_ns());
                    return RD_KAFKA_RESP_ERR_NO_ERROR;
                },
                it);
            rd_kafka_interceptor_add_on_response_received(kafka, name, answered, it);
            return rd_kafka_interceptor_add_on_broker_state_change(kafka, name, changed, it);
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
    losses_ = {};
    limit_.clear();
    for (auto& [address, connection] : connections_) {
        connection.lost.reset();
    }
}

std::vector<Disconnection> BrokerConnections::disconnections() const {
    const std::lock_guard lock(mutex_);
    return disconnections_;
}

ConnectionLosses BrokerConnections::losses() const {
    const std::lock_guard lock(mutex_);
    return losses_;
}

std::string BrokerConnections::limit() const {
    const std::lock_guard lock(mutex_);
    return limit_;
}

void BrokerConnections::note(rd_kafka_resp_err_t error, std::string_view words) {
    const std::lock_guard lock(mutex_);
    if (error != RD_KAFKA_RESP_ERR__TRANSPORT) {
        return;
    }
    if (losses_.why.empty()) {
        losses_.why = words;
    }
    if (limit_.empty()) {
        limit_ = local_limit_in(words);
    }
}

void BrokerConnections::sent(std::int32_t broker, bool answered, std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    Use& use = uses_[broker];
    use.waiting += answered ? 1 : 0;
    use.last_ns = now_ns;
}

// The answer to a request that was sent before the broker's id was known is none of this id's.
void BrokerConnections::received(std::int32_t broker, std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    Use& use = uses_[broker];
    use.waiting -= use.waiting > 0 ? 1 : 0;
    use.last_ns = now_ns;
}

void BrokerConnections::change(std::int32_t broker, std::pair<std::string, int> address,
                               std::string_view state, std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    if (!watching_) {
        return;
    }
    if (state == "CONNECT") {
        uses_.erase(broker);  // what an attempt that failed had sent
    }
    Connection& it = connections_[std::move(address)];
    // The connection stays when the library learns the broker's id, or logs in again.
    if (state == "UP" || state == "UPDATE" || state == "REAUTH") {
        it.up = true;
        if (it.lost) {
            disconnections_[*std::exchange(it.lost, std::nullopt)].back_ns = now_ns;
        }
    } else if (std::exchange(it.up, false) && broker >= 0) {
        const Use use = std::exchange(uses_[broker], {});
        if (use.waiting > 0 || now_ns - use.last_ns < kInUseNs) {
            ++losses_.count;
        }
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
