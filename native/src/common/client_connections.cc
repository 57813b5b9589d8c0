#include "common/client_connections.h"

#include <algorithm>
#include <iterator>

namespace hydra {

std::shared_ptr<Carrier> Carriers::at(const std::string& connection) const {
    const auto found = carriers_.find(connection);
    return found == carriers_.end() ? nullptr : found->second;
}

bool Carriers::newer(const Hello& hello) const {
    return !hello.ids.empty() && std::ranges::all_of(hello.ids, [&](Id id) {
        return holds(id) && (!of(id) || of(id)->incarnation < hello.incarnation);
    });
}

std::shared_ptr<Carrier> Carriers::come(const std::string& connection, const Hello& hello) {
    auto carrier = std::make_shared<Carrier>(Carrier{
        .connection = connection, .ids = hello.ids, .incarnation = hello.incarnation, .pid = hello.pid});
    for (const Id id : hello.ids) {
        of_[id] = carrier;
    }
    return carriers_[connection] = carrier;
}

void Carriers::left(Carrier& carrier) {
    carrier.ended = true;
    carrier.quit_again_ns = kNeverNs;
    for (const Id id : carrier.ids) {
        of_[id].reset();
    }
}

Ids Carriers::present(const Ids& named) const {
    Ids ids;
    std::ranges::copy_if(named.empty() ? all_ : named, std::back_inserter(ids),
                         [this](Id id) { return holds(id) && of(id); });
    return ids;
}

Ids Carriers::carried(const Carrier& carrier, const Ids& named) const {
    Ids ids;
    std::ranges::copy_if(named, std::back_inserter(ids),
                         [&](Id id) { return holds(id) && of(id).get() == &carrier; });
    return ids;
}

Ids Carriers::own(const Carrier& carrier, const Ids& named) const {
    if (!carrier.ended) {
        return carried(carrier, named);
    }
    Ids ids;
    std::ranges::copy_if(named, std::back_inserter(ids),
                         [&](Id id) { return std::ranges::binary_search(carrier.ids, id); });
    return ids;
}

}  // namespace hydra
