// When a client of librdkafka lost its connections to brokers, and when it had them again. The library opens
// them again by itself; its threads call `change`.
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

#include "common/subscriber_connection.h"

namespace hydra {

// Outlives the client whose connections it watches.
class BrokerConnections {
  public:
    // Watches the client that is made from this configuration.
    void watch(rd_kafka_conf_t* conf);
    // The client is about to end: what follows is no loss.
    void end();
    // Forgets the disconnections until now.
    void begin_step();
    [[nodiscard]] std::vector<Disconnection> disconnections() const;

    // The connection to a broker has another state. `broker` is its id; below 0 it is only an address to
    // begin with, whose end disconnects from no data.
    void change(std::int32_t broker, std::pair<std::string, int> address, std::string_view state,
                std::int64_t now_ns);

  private:
    struct Connection {
        bool up = false;
        std::optional<std::size_t> lost{};  // its disconnection, until that ends
    };

    mutable std::mutex mutex_;
    bool watching_ = false;
    std::map<std::pair<std::string, int>, Connection> connections_;
    std::vector<Disconnection> disconnections_;
};

}  // namespace hydra
