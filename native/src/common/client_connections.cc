#include "common/client_connections.h"

#include <algorithm>
#include <iterator>

namespace hydra {

std::shared_ptr<ClientConnection> ClientConnections::at(const std::string& name) const {
    const auto found = connections_.find(name);
    return found == connections_.end() ? nullptr : found->second;
}

bool ClientConnections::newer(const Hello& hello) const {
    return !hello.ids.empty() && std::ranges::all_of(hello.ids, [&](Id id) {
        return holds(id) && (!of(id) || of(id)->incarnation < hello.incarnation);
    });
}

std::shared_ptr<ClientConnection> ClientConnections::add(const std::string& name, const Hello& hello) {
    auto connection = std::make_shared<ClientConnection>(
        ClientConnection{.name = name, .ids = hello.ids, .incarnation = hello.incarnation, .pid = hello.pid});
    for (const Id id : hello.ids) {
        of_[id] = connection;
    }
    return connections_[name] = connection;
}

void ClientConnections::left(ClientConnection& connection) {
    connection.ended = true;
    connection.quit_resend_ns = kNeverNs;
    for (const Id id : connection.ids) {
        of_[id].reset();
    }
}

Ids ClientConnections::present(const Ids& named) const {
    Ids ids;
    std::ranges::copy_if(named.empty() ? all_ : named, std::back_inserter(ids),
                         [this](Id id) { return holds(id) && of(id); });
    return ids;
}

Ids ClientConnections::current_ids(const ClientConnection& connection, const Ids& named) const {
    Ids ids;
    std::ranges::copy_if(named, std::back_inserter(ids),
                         [&](Id id) { return holds(id) && of(id).get() == &connection; });
    return ids;
}

Ids ClientConnections::reported_ids(const ClientConnection& connection, const Ids& named) const {
    if (!connection.ended) {
        return current_ids(connection, named);
    }
    Ids ids;
    std::ranges::copy_if(named, std::back_inserter(ids),
                         [&](Id id) { return std::ranges::binary_search(connection.ids, id); });
    return ids;
}

}  // namespace hydra
