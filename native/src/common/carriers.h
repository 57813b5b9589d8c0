// Which process carries which client of a group. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/by_client.h"
#include "common/clock.h"
#include "common/messages/from_client.h"

namespace hydra {

// A process of clients, by its connection.
struct Carrier {
    std::string connection;
    Ids ids;  // ascending
    std::uint32_t incarnation = 0;
    std::uint32_t pid = 0;
    std::int64_t quit_again_ns = kNeverNs;  // of one that was told to quit
    bool ended = false;                     // what it said last may come after that
};

class Carriers {
  public:
    explicit Carriers(const Ids& ids) : all_(ids), of_(ids) {}

    // Null: nobody has said hello there.
    [[nodiscard]] std::shared_ptr<Carrier> at(const std::string& connection) const;
    // Null: the client is not there.
    [[nodiscard]] const std::shared_ptr<Carrier>& of(Id client) const { return of_[client]; }
    [[nodiscard]] bool holds(Id client) const { return of_.holds(client); }
    [[nodiscard]] const std::map<std::string, std::shared_ptr<Carrier>>& all() const { return carriers_; }

    // Whether all that say this are of the group, and of later processes than those that are there.
    [[nodiscard]] bool newer(const Hello& hello) const;
    // From now on these clients are carried there.
    std::shared_ptr<Carrier> come(const std::string& connection, const Hello& hello);
    // It has ended: its clients are carried by nobody.
    void left(Carrier& carrier);

    // Those of these clients that are there; none named: all.
    [[nodiscard]] Ids present(const Ids& named) const;
    // Those of these whom it carries.
    [[nodiscard]] Ids carried(const Carrier& carrier, const Ids& named) const;
    // Likewise, or whom it carried until it ended.
    [[nodiscard]] Ids own(const Carrier& carrier, const Ids& named) const;

  private:
    Ids all_;
    ByClient<std::shared_ptr<Carrier>> of_;
    std::map<std::string, std::shared_ptr<Carrier>> carriers_;  // by connection
};

}  // namespace hydra
