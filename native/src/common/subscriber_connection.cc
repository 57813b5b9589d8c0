#include "common/subscriber_connection.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/local_limits.h"

namespace hydra {
namespace {

constexpr std::size_t kMostDisconnections = 64;

}  // namespace

std::int64_t attempt_limit_ns(std::int64_t now_ns, std::int64_t until_ns) {
    if (until_ns == kNeverNs) {
        return SubscriberConnection::kAttemptNs;
    }
    return std::max(std::min(SubscriberConnection::kAttemptNs, until_ns - now_ns), kMillisecondNs);
}

SubscriberConnection::SubscriberConnection(const Connect& connect, Id client)
    : clock_(connect.clock),
      due_step_ns_(connect.at_ns == 0 ? 0 : connect.due_ns(client)),
      due_ns_(clock_.monotonic_of(due_step_ns_)),
      until_ns_(due_ns_ + to_ns(connect.within_s)),
      connected_(connect.at_ns == 0),
      next_ns_(connected_ ? kNeverNs : due_ns_) {}

void SubscriberConnection::begin(std::int64_t now_ns) {
    began_ns_ = now_ns;
    limit_ns_ = attempt_limit_ns(now_ns, until_ns());
    if (!disconnections_.empty()) {
        ++disconnections_.back().attempts;
        return;
    }
    ++attempts_;
    if (!lag_us_) {
        lag_us_ = since_due_us(now_ns);
    }
}

void SubscriberConnection::fail(std::int64_t now_ns, const std::string& why) {
    next_ns_ = now_ns + kAgainNs;
    if (!disconnections_.empty()) {
        return;
    }
    if (const std::string_view limit = local_limit_in(why); !limit.empty()) {
        ++local_[std::string(limit)];
    } else if (now_ns - began_ns_ >= limit_ns_) {
        ++timed_out_;
    } else if (refused_++ == 0) {
        refused_why_ = why;
    }
    if (next_ns_ >= until_ns_) {
        next_ns_ = kNeverNs;
    }
}

void SubscriberConnection::succeed(std::int64_t now_ns, const ConnectPhases& phases) {
    connected_ = true;
    next_ns_ = kNeverNs;
    if (!disconnections_.empty()) {
        disconnections_.back().back_ns = now_ns;
        return;
    }
    phases_ = phases;
    if (phases.subscribed) {
        ready_us_ = since_due_us(now_ns);
    }
}

void SubscriberConnection::give_up(bool trying) {
    next_ns_ = kNeverNs;
    if (trying) {
        ++attempts_;
        ++timed_out_;
    }
}

void SubscriberConnection::receive(std::int64_t now_ns) {
    if (first_us_ || due_step_ns_ == 0) {
        return;
    }
    first_us_ = since_due_us(now_ns);
    if (!ready_us_ && now_ns <= until_ns_) {
        ready_us_ = first_us_;
    }
}

void SubscriberConnection::lose(std::int64_t now_ns) {
    connected_ = false;
    next_ns_ = now_ns;
    if (disconnections_.size() < kMostDisconnections) {
        disconnections_.push_back({.lost_ns = now_ns});
    } else {
        disconnections_.back().back_ns = 0;
    }
}

nlohmann::json SubscriberConnection::report(const std::vector<Disconnection>& by_library,
                                            std::string_view limit) const {
    nlohmann::json object{
        {"due_ns", due_step_ns_}, {"attempts", attempts_}, {"refused", refused_}, {"timed_out", timed_out_}};
    if (!refused_why_.empty()) {
        object["refused_why"] = refused_why_;
    }
    auto local = local_;
    if (!limit.empty() && attempts_ > 0 && !ready_us_ && disconnections_.empty()) {
        ++local[std::string(limit)];
    }
    if (!local.empty()) {
        object["local"] = std::move(local);
    }
    const auto add = [&](const char* name, const std::optional<std::int64_t>& value) {
        if (value) {
            object[name] = *value;
        }
    };
    add("lag_us", lag_us_);
    if (phases_.connected_ns != 0) {
        object["connected_us"] = since_due_us(phases_.connected_ns);
    }
    add("ready_us", ready_us_);
    add("first_us", first_us_);
    add("tcp_us", phases_.tcp_us);
    add("tls_us", phases_.tls_us);
    add("login_us", phases_.login_us);
    nlohmann::json all = nlohmann::json::array();
    for (const auto* each : {&disconnections_, &by_library}) {
        for (const Disconnection& it : *each) {
            all.push_back(
                {clock_.at_ns(it.lost_ns), it.back_ns == 0 ? 0 : clock_.at_ns(it.back_ns), it.attempts});
        }
    }
    if (!all.empty()) {
        object["disconnections"] = std::move(all);
    }
    return object;
}

std::int64_t SubscriberConnection::since_due_us(std::int64_t now_ns) const {
    return std::max<std::int64_t>(now_ns - due_ns_, 0) / 1000;
}

}  // namespace hydra
