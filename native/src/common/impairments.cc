#include "common/impairments.h"

#include <algorithm>

namespace hydra {

const Impairment* Impairments::active(std::int64_t since_start_ns) const {
    const auto found = std::ranges::find_if(spells_, [&](const Impairment& spell) {
        return to_ns(spell.begin_s) <= since_start_ns && since_start_ns < to_ns(spell.end_s);
    });
    return found == spells_.end() ? nullptr : &*found;
}

Impairments::Change Impairments::at(std::int64_t since_start_ns) {
    const Impairment* const now = active(since_start_ns);
    if (now == now_) {
        return Change::none;
    }
    now_ = now;
    limit_.reset();
    if (now != nullptr && now->kind == ImpairmentKind::slow) {
        limit_.emplace(now->rate, to_ns(now->begin_s));
    }
    const bool gone = now != nullptr && now->kind == ImpairmentKind::gone;
    if (gone == gone_) {
        return Change::none;
    }
    gone_ = gone;
    return gone ? Change::leave : Change::come_back;
}

void Impairments::read(std::int64_t since_start_ns, std::uint64_t messages) {
    if (limit_) {
        limit_->read(since_start_ns, messages);
    }
}

bool Impairments::end() {
    const bool gone = gone_;
    spells_.clear();
    now_ = nullptr;
    limit_.reset();
    gone_ = false;
    return gone;
}

std::size_t Impairments::allowance(std::int64_t since_start_ns, std::size_t most) const {
    if (now_ == nullptr) {
        return most;
    }
    return limit_ ? std::min<std::uint64_t>(limit_->allowance(since_start_ns), most) : 0;
}

std::int64_t Impairments::next_ns(std::int64_t since_start_ns) const {
    std::int64_t next = kNeverNs;
    for (const Impairment& spell : spells_) {
        for (const double edge_s : {spell.begin_s, spell.end_s}) {
            if (const std::int64_t edge_ns = to_ns(edge_s); edge_ns > since_start_ns) {
                next = std::min(next, edge_ns);
            }
        }
    }
    // A subscriber that may read already waits for messages, not for the clock.
    if (limit_ && limit_->allowance(since_start_ns) == 0) {
        next = std::min(next, limit_->next_ns(since_start_ns));
    }
    return next;
}

}  // namespace hydra
