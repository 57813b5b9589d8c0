#include "common/impairments.h"

#include <algorithm>
#include <cmath>

namespace hydra {

const Impairment* Impairments::active(std::int64_t since_start_ns) const {
    const auto found = std::ranges::find_if(spells_, [&](const Impairment& spell) {
        return to_ns(spell.begin_s) <= since_start_ns && since_start_ns < to_ns(spell.end_s);
    });
    return found == spells_.end() ? nullptr : &*found;
}

Impairments::Change Impairments::at(std::int64_t since_start_ns, std::uint64_t messages) {
    const Impairment* const now = active(since_start_ns);
    if (now == now_) {
        return Change::none;
    }
    now_ = now;
    before_ = messages;
    const bool gone = now != nullptr && now->kind == ImpairmentKind::gone;
    if (gone == gone_) {
        return Change::none;
    }
    gone_ = gone;
    return gone ? Change::leave : Change::come_back;
}

bool Impairments::end() {
    const bool gone = gone_;
    spells_.clear();
    now_ = nullptr;
    gone_ = false;
    return gone;
}

std::size_t Impairments::allowance(std::int64_t since_start_ns, std::uint64_t messages,
                                   std::size_t most) const {
    if (now_ == nullptr) {
        return most;
    }
    if (now_->kind == ImpairmentKind::gone) {
        return 0;
    }
    const auto since_begin_ns =
        static_cast<double>(std::max<std::int64_t>(since_start_ns - to_ns(now_->begin_s), 0));
    const double allowed =
        std::floor(since_begin_ns * now_->rate / 1e9) + 1 - static_cast<double>(messages - before_);
    return allowed <= 0 ? 0 : static_cast<std::size_t>(std::min(allowed, static_cast<double>(most)));
}

std::int64_t Impairments::next_ns(std::int64_t since_start_ns, std::uint64_t messages) const {
    std::int64_t next = kNeverNs;
    for (const Impairment& spell : spells_) {
        for (const double edge_s : {spell.begin_s, spell.end_s}) {
            if (const std::int64_t edge_ns = to_ns(edge_s); edge_ns > since_start_ns) {
                next = std::min(next, edge_ns);
            }
        }
    }
    // A subscriber that may read already waits for messages, not for the clock.
    if (now_ != nullptr && now_->kind == ImpairmentKind::slow && now_->rate > 0 &&
        allowance(since_start_ns, messages, 1) == 0) {
        // The next message may be read at its begin + messages / rate.
        const double after_ns = std::ceil(static_cast<double>(messages - before_) / now_->rate * 1e9);
        if (after_ns < 9e18) {
            next = std::min(next, std::max(to_ns(now_->begin_s) + static_cast<std::int64_t>(after_ns) + 1,
                                           since_start_ns + 1));
        }
    }
    return next;
}

}  // namespace hydra
