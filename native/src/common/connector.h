// Makes connections on threads of their own, so that the clients of one process do not wait for each other:
// the libraries' calls wait for the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/messages/from_controller.h"
#include "common/transport.h"

namespace hydra {

class Connector {
  public:
    // An attempt of a client: a transport that nothing else uses.
    struct Attempt {
        std::size_t client = 0;
        std::uint64_t number = 0;
        std::unique_ptr<SubscriberTransport> transport{};
        std::shared_ptr<const Configure> command{};
        std::int64_t until_ns = 0;  // when the client gives up
        // When it is over: its begin and end (CLOCK_MONOTONIC; begin 0: there was no time left for it).
        std::int64_t began_ns = 0;
        std::int64_t ended_ns = 0;
        bool failed = false;
        std::string why{};  // it failed
    };

    Connector();
    ~Connector();
    Connector(const Connector&) = delete;
    Connector& operator=(const Connector&) = delete;

    // At most `most` attempts are made at a time; others wait for their turn.
    void start(Attempt attempt, std::size_t most);
    // The attempts that are over.
    std::vector<Attempt> take();
    // Becomes readable (an edge) when an attempt is over; it is never read.
    [[nodiscard]] int fd() const;

  private:
    struct State;

    std::shared_ptr<State> state_;  // threads may outlive the connector: a library call cannot be interrupted
};

}  // namespace hydra
