// Equal replies of several clients, gathered into one message for all of them. Pure: the times are given.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "common/clock.h"
#include "common/messages/parts.h"

namespace hydra {

inline constexpr std::int64_t kGatherNs = 10 * kMillisecondNs;

// Replies by their content; a reply waits for at most kGatherNs.
template <typename What>
class ReplyAggregator {
  public:
    void add(const What& what, Id client, std::int64_t now_ns) {
        if (clients_.empty()) {
            due_ns_ = now_ns + kGatherNs;
        }
        clients_[what].push_back(client);
    }

    // When the first reply has waited long enough; kNeverNs if none waits.
    [[nodiscard]] std::int64_t due_ns() const { return clients_.empty() ? kNeverNs : due_ns_; }

    // Calls `each` with every reply that waits and its clients.
    void flush(auto each) {
        const auto waiting = std::exchange(clients_, {});
        for (auto [what, ids] : waiting) {
            std::ranges::sort(ids);
            const auto again = std::ranges::unique(ids);
            ids.erase(again.begin(), again.end());
            each(what, std::move(ids));
        }
    }

    void clear() { clients_.clear(); }

  private:
    std::map<What, Ids> clients_;
    std::int64_t due_ns_ = 0;
};

}  // namespace hydra
