#include "common/registration.h"

#include <algorithm>

#include "common/command_replies.h"
#include "common/reply_aggregation.h"

namespace hydra {

void PendingRegistrations::add(Id client, std::int64_t now_ns) {
    clients_[client].joined = true;
    ++joined_;
    // Sent at once if no other client can join.
    unsent_ns_ = joined_ == clients_.size() ? now_ns : std::min(unsent_ns_, now_ns + kGatherNs);
}

void PendingRegistrations::left(Id client) {
    Client& it = clients_[client];
    if (!it.joined) {
        return;
    }
    --joined_;
    // A welcome for this process may be on its way; the controller's welcome would then name the next process
    // as well.
    const bool welcome_may_come = it.unnamed > 0 || (!it.named && it.named_from > 1);
    it = Client();
    it.named_from = welcome_may_come ? 2 : 1;
}

void PendingRegistrations::named(Id client) {
    Client& it = clients_[client];
    it.named = it.named || it.sent >= it.named_from;
    it.unnamed -= it.unnamed > 0 ? 1 : 0;
}

Ids PendingRegistrations::take(std::int64_t now_ns) {
    Ids ids;
    if (now_ns < due_ns()) {
        return ids;
    }
    unsent_ns_ = unnamed_ns_ = kNeverNs;
    Id client = clients_.first();
    for (Client& it : clients_) {
        const Id id = client++;
        if (!it.joined || it.named) {
            continue;
        }
        if (it.sent == 0 || now_ns >= it.sent_ns + kResendEveryNs) {
            ++it.sent;
            ++it.unnamed;
            it.sent_ns = now_ns;
            ids.push_back(id);
        }
        unnamed_ns_ = std::min(unnamed_ns_, it.sent_ns + kResendEveryNs);
    }
    return ids;
}

}  // namespace hydra
