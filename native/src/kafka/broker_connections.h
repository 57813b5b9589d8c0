// When a client of librdkafka lost its connections to brokers, and when it had them again. The library opens
// them again by itself; its threads call `change`, `sent` and `received`.
//
// A broker closes a connection that nothing uses, and the library reports such an end like any other. So
// only a connection in use counts as lost: one with a request on its way, or used a moment before.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/acceptance.h"
#include "common/subscriber_connection.h"

namespace hydra {

// Outlives the client whose connections it watches.
class BrokerConnections {
  public:
    // Watches the client that is made from this configuration. A broker answers messages if `acknowledges`.
    void watch(rd_kafka_conf_t* conf, bool acknowledges = true);
    // The client is about to end: what follows is no loss.
    void end();
    // Forgets the disconnections and losses until now.
    void begin_step();
    [[nodiscard]] std::vector<Disconnection> disconnections() const;
    // The connections in use that were lost, and the library's first error about a connection.
    [[nodiscard]] ConnectionLosses losses() const;

    // The limit of this host that the library's errors show, or "".
    [[nodiscard]] std::string limit() const;

    // An error of the library.
    void note(rd_kafka_resp_err_t error, std::string_view words);

    // The connection to a broker has another state. `broker` is its id; below 0 it is only an address to
    // begin with, whose end disconnects from no data.
    void change(std::int32_t broker, std::pair<std::string, int> address, std::string_view state,
                std::int64_t now_ns);
    // A request to a broker was sent, and is answered or not; an answer has arrived.
    void sent(std::int32_t broker, bool answered, std::int64_t now_ns);
    void received(std::int32_t broker, std::int64_t now_ns);

  private:
    struct Use {
        std::uint64_t waiting = 0;  // requests on their way
        std::int64_t last_ns = 0;   // the last request or answer
    };

    struct Connection {
        bool up = false;
        std::optional<std::size_t> lost{};  // its disconnection, until that ends
    };

    mutable std::mutex mutex_;
    bool watching_ = false;
    bool acknowledges_ = true;
    std::map<std::pair<std::string, int>, Connection> connections_;
    std::map<std::int32_t, Use> uses_;  // by the id of the broker
    ConnectionLosses losses_;
    std::string limit_;
    std::vector<Disconnection> disconnections_;
};

}  // namespace hydra
