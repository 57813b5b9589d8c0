// Parts of a step in which a subscriber reads slowly, or has no connection. Pure: the times are given.
// (As hydra/client/subscriber_state.py.)
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/messages/from_controller.h"

namespace hydra {

class Impairments {
  public:
    enum class Change { none, leave, come_back };

    explicit Impairments(std::vector<Impairment> spells) : spells_(std::move(spells)) {}

    [[nodiscard]] bool empty() const { return spells_.empty(); }
    [[nodiscard]] bool gone() const { return gone_; }

    // What has to be done so long after the start, when so many messages have been read.
    Change at(std::int64_t since_start_ns, std::uint64_t messages);
    // Whether `at` has something to say that it has not said.
    [[nodiscard]] bool due(std::int64_t since_start_ns) const { return active(since_start_ns) != now_; }
    // The step is drained: whether the connection has to be made anew.
    bool end();

    // How many messages may be read now, at most `most`.
    [[nodiscard]] std::size_t allowance(std::int64_t since_start_ns, std::uint64_t messages,
                                        std::size_t most) const;

    // When something changes next, after the start; kNeverNs if nothing.
    [[nodiscard]] std::int64_t next_ns(std::int64_t since_start_ns, std::uint64_t messages) const;

  private:
    // Of several at once the first counts.
    [[nodiscard]] const Impairment* active(std::int64_t since_start_ns) const;

    std::vector<Impairment> spells_;
    const Impairment* now_ = nullptr;
    std::uint64_t before_ = 0;  // messages that had been read when the present one began
    bool gone_ = false;
};

}  // namespace hydra
