#include "common/impairments.h"

#include <algorithm>

namespace hydra {

const Impairment* Impairments::active(std::int64_t since_start_ns) const {
    const auto found = std::ranges::find_if(impairments_, [&](const Impairment& impairment) {
        return to_ns(impairment.begin_s) <= since_start_ns && since_start_ns < to_ns(impairment.end_s);
    });
    return found == impairments_.end() ? nullptr : &*found;
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
    const bool absent = now != nullptr && now->kind == ImpairmentKind::absent;
    if (absent == absent_) {
        return Change::none;
    }
    absent_ = absent;
    return absent ? Change::leave : Change::come_back;
}

void Impairments::read(std::int64_t since_start_ns, std::uint64_t messages) {
    if (limit_) {
        limit_->read(since_start_ns, messages);
    }
}

bool Impairments::end() {
    const bool absent = absent_;
    impairments_.clear();
    now_ = nullptr;
    limit_.reset();
    absent_ = false;
    return absent;
}

std::size_t Impairments::allowance(std::int64_t since_start_ns, std::size_t most) const {
    if (now_ == nullptr) {
        return most;
    }
    return limit_ ? std::min<std::uint64_t>(limit_->allowance(since_start_ns), most) : 0;
}

std::int64_t Impairments::next_ns(std::int64_t since_start_ns) const {
    std::int64_t next = kNeverNs;
    for (const Impairment& impairment : impairments_) {
        for (const double edge_s : {impairment.begin_s, impairment.end_s}) {
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
