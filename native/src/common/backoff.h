// When to send and resend something: at once, then with doubled waits. Pure, time is passed in.
// (Python: hydra/client/pacing.py.)
//
// Every resend wakes up thousands of subscribers, so the waits grow.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/clock.h"

namespace hydra {

class Backoff {
  public:
    Backoff() = default;  // no time at all

    static constexpr std::int64_t kFirstWaitNs = 50 * kMillisecondNs;

    // From `begin_ns` on, with waits from `first_ns` to at most `longest_ns`, until `until_ns` after the
    // begin.
    Backoff(std::int64_t begin_ns, std::int64_t longest_ns, std::int64_t until_ns,
            std::int64_t first_ns = kFirstWaitNs)
        : next_ns_(begin_ns),
          wait_ns_(first_ns),
          longest_ns_(longest_ns),
          last_ns_(until_ns == kNeverNs ? kNeverNs : begin_ns + until_ns) {}

    // Whether it is time, which is not before `rested_ns`; if so, sets the next time. A late call delays the
    // next time, so calls do not follow each other closely.
    bool due(std::int64_t now_ns, std::int64_t rested_ns = 0) {
        if (now_ns < next_ns_) {
            return false;
        }
        if (now_ns < rested_ns) {
            next_ns_ = rested_ns;
            return false;
        }
        next_ns_ = now_ns + wait_ns_;
        if (next_ns_ > last_ns_) {
            next_ns_ = kNeverNs;
        }
        wait_ns_ = std::min(2 * wait_ns_, longest_ns_);
        return true;
    }

    // kNeverNs if there is no next time.
    [[nodiscard]] std::int64_t next_ns() const { return next_ns_; }

  private:
    std::int64_t next_ns_ = kNeverNs;
    std::int64_t wait_ns_ = kFirstWaitNs;
    std::int64_t longest_ns_ = 0;
    std::int64_t last_ns_ = kNeverNs;
};

}  // namespace hydra
