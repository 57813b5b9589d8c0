// The processes of a group and the clients that run in them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/by_client.h"
#include "common/clock.h"
#include "common/messages/from_client.h"

namespace hydra {

// A process of clients, with the name of its connection.
struct ClientConnection {
    std::string name;
    Ids ids;  // ascending
    std::uint32_t incarnation = 0;
    std::uint32_t pid = 0;
    std::int64_t quit_resend_ns = kNeverNs;  // when `quit` is resent to it
    bool ended = false;                      // its last messages may still arrive
};

class ClientConnections {
  public:
    explicit ClientConnections(const Ids& ids) : all_(ids), of_(ids) {}

    // The process with this connection; null if it has sent no `hello`.
    [[nodiscard]] std::shared_ptr<ClientConnection> at(const std::string& name) const;
    // The process of a client; null if the client is not connected.
    [[nodiscard]] const std::shared_ptr<ClientConnection>& of(Id client) const { return of_[client]; }
    [[nodiscard]] bool holds(Id client) const { return of_.holds(client); }
    [[nodiscard]] const std::map<std::string, std::shared_ptr<ClientConnection>>& all() const {
        return connections_;
    }

    // Whether all ids in this `hello` are of the group, and its process is newer than their present ones.
    [[nodiscard]] bool newer(const Hello& hello) const;
    // These clients run in the process with this connection from now on.
    std::shared_ptr<ClientConnection> add(const std::string& name, const Hello& hello);
    // The process has ended: its clients have no process.
    void left(ClientConnection& connection);

    // The clients among these that are connected; no ids stand for all.
    [[nodiscard]] Ids present(const Ids& named) const;
    // The clients among these that run in this process.
    [[nodiscard]] Ids current_ids(const ClientConnection& connection, const Ids& named) const;
    // The clients among these that run in this process, or ran in it until it ended.
    [[nodiscard]] Ids reported_ids(const ClientConnection& connection, const Ids& named) const;

  private:
    Ids all_;
    ByClient<std::shared_ptr<ClientConnection>> of_;
    std::map<std::string, std::shared_ptr<ClientConnection>> connections_;  // by name
};

}  // namespace hydra
