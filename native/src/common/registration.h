// Which clients the controller has to be told of: those that no welcome has named. Pure: the times are given.
// (As hydra/client/relayed_replies.py.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/by_client.h"
#include "common/clock.h"

namespace hydra {

// Those that came are told of together; again and again, until they are named or gone.
class PendingRegistrations {
  public:
    explicit PendingRegistrations(const Ids& ids) : clients_(ids) {}

    // It is there now.
    void add(Id client, std::int64_t now_ns);
    // It is gone.
    void left(Id client);
    // A welcome has named it.
    void named(Id client);
    // Whether the controller knows of the process that this client is in now.
    [[nodiscard]] bool is_named(Id client) const { return clients_[client].named; }

    // Those that came need not wait for others.
    void hurry(std::int64_t now_ns) { untold_ns_ = now_ns; }

    // Who is to be told of now, ascending.
    Ids take(std::int64_t now_ns);
    // When somebody is to be told of next, or before; kNeverNs: nobody is.
    [[nodiscard]] std::int64_t due_ns() const { return untold_ns_ < unnamed_ns_ ? untold_ns_ : unnamed_ns_; }

  private:
    struct Client {
        bool there = false;
        bool named = false;
        std::uint32_t told = 0;     // how often it was told of
        std::int64_t told_ns = 0;   // when it was last
        std::uint32_t unnamed = 0;  // of these, how often without a welcome since
        // A welcome means this one, and no earlier one of its id, once it was told of so often.
        std::uint32_t named_from = 1;
    };

    ByClient<Client> clients_;
    std::size_t there_ = 0;
    std::int64_t untold_ns_ = kNeverNs;   // when those are told of that are new
    std::int64_t unnamed_ns_ = kNeverNs;  // and those that the controller has not named
};

}  // namespace hydra
