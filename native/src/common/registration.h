// Clients whose registration the controller has not confirmed by a welcome. Pure: the times are given.
// (Python: hydra/client/relayed_replies.py.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/by_client.h"
#include "common/clock.h"

namespace hydra {

// Registrations of several clients are sent together, and resent until a welcome names the client or it ends.
class PendingRegistrations {
  public:
    explicit PendingRegistrations(const Ids& ids) : clients_(ids) {}

    // The client has joined.
    void add(Id client, std::int64_t now_ns);
    // The client has ended.
    void left(Id client);
    // A welcome has named the client.
    void named(Id client);
    // Whether the controller knows the present process of this client.
    [[nodiscard]] bool is_named(Id client) const { return clients_[client].named; }

    // Registrations no longer wait for those of others.
    void hurry(std::int64_t now_ns) { unsent_ns_ = now_ns; }

    // The clients to register now, ascending.
    Ids take(std::int64_t now_ns);
    // When the next registration has to be sent, or earlier; kNeverNs: there is none.
    [[nodiscard]] std::int64_t due_ns() const { return unsent_ns_ < unnamed_ns_ ? unsent_ns_ : unnamed_ns_; }

  private:
    struct Client {
        bool joined = false;
        bool named = false;
        std::uint32_t sent = 0;     // how often its registration was sent
        std::int64_t sent_ns = 0;   // when it was last sent
        std::uint32_t unnamed = 0;  // how often it was sent without a welcome since
        // A welcome means this process, and no earlier one with its id, after its registration was sent this
        // often.
        std::uint32_t named_from = 1;
    };

    ByClient<Client> clients_;
    std::size_t joined_ = 0;
    std::int64_t unsent_ns_ = kNeverNs;   // when new registrations are sent
    std::int64_t unnamed_ns_ = kNeverNs;  // when registrations without a welcome are resent
};

}  // namespace hydra
