// When to say something again: at once, then at doubling distances. Pure, time is passed in.
// (As hydra/client/pacing.py.)
//
// Every repetition wakes all of thousands of subscribers, so what is said early is said often, and later ever
// more rarely.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/clock.h"

namespace hydra {

class Backoff {
  public:
    Backoff() = default;  // never

    // From `begin_ns` on, never further apart than `longest_ns`, and none later than `until_ns` after the
    // begin.
    Backoff(std::int64_t begin_ns, std::int64_t longest_ns, std::int64_t until_ns)
        : next_ns_(begin_ns),
          longest_ns_(longest_ns),
          last_ns_(until_ns == kNeverNs ? kNeverNs : begin_ns + until_ns) {}

    // Whether it is time, which is not before `rested_ns`; if so, the next time is fixed. A late call moves
    // it, so that none follow in a rush.
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

    // kNeverNs when there is no next time.
    [[nodiscard]] std::int64_t next_ns() const { return next_ns_; }

  private:
    std::int64_t next_ns_ = kNeverNs;
    std::int64_t wait_ns_ = 50 * kMillisecondNs;
    std::int64_t longest_ns_ = 0;
    std::int64_t last_ns_ = kNeverNs;
};

}  // namespace hydra
