#include "common/registration.h"

#include <algorithm>

#include "common/command_replies.h"
#include "common/reply_aggregation.h"

namespace hydra {

void PendingRegistrations::add(Id client, std::int64_t now_ns) {
    clients_[client].there = true;
    ++there_;
    // Sent at once if no other client can join.
    untold_ns_ = there_ == clients_.size() ? now_ns : std::min(untold_ns_, now_ns + kGatherNs);
}

void PendingRegistrations::left(Id client) {
    Client& it = clients_[client];
    if (!it.there) {
        return;
    }
    --there_;
    // A welcome for this process may be on its way; the controller's welcome would then name the next process
    // as well.
    const bool welcome_may_come = it.unnamed > 0 || (!it.named && it.named_from > 1);
    it = Client();
    it.named_from = welcome_may_come ? 2 : 1;
}

void PendingRegistrations::named(Id client) {
    Client& it = clients_[client];
    it.named = it.named || it.told >= it.named_from;
    it.unnamed -= it.unnamed > 0 ? 1 : 0;
}

Ids PendingRegistrations::take(std::int64_t now_ns) {
    Ids ids;
    if (now_ns < due_ns()) {
        return ids;
    }
    untold_ns_ = unnamed_ns_ = kNeverNs;
    Id client = clients_.first();
    for (Client& it : clients_) {
        const Id id = client++;
        if (!it.there || it.named) {
            continue;
        }
        if (it.told == 0 || now_ns >= it.told_ns + kAgainNs) {
            ++it.told;
            ++it.unnamed;
            it.told_ns = now_ns;
            ids.push_back(id);
        }
        unnamed_ns_ = std::min(unnamed_ns_, it.told_ns + kAgainNs);
    }
    return ids;
}

}  // namespace hydra
