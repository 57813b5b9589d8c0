// Parts of a step in which a subscriber reads slowly or has no connection. Pure: the times are given.
// (Python: hydra/client/subscriber_state.py.)
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/messages/from_controller.h"
#include "common/read_limit.h"

namespace hydra {

class Impairments {
  public:
    enum class Change { none, leave, come_back };

    explicit Impairments(std::vector<Impairment> impairments) : impairments_(std::move(impairments)) {}

    [[nodiscard]] bool empty() const { return impairments_.empty(); }
    [[nodiscard]] bool absent() const { return absent_; }

    // The change that is due at this time.
    Change at(std::int64_t since_start_ns);
    // Messages were read at this time.
    void read(std::int64_t since_start_ns, std::uint64_t messages);
    // Whether `at` would return a change now.
    [[nodiscard]] bool due(std::int64_t since_start_ns) const { return active(since_start_ns) != now_; }
    // The step is drained: returns whether a new connection has to be made.
    bool end();

    // The number of messages that may be read now, at most `most`.
    [[nodiscard]] std::size_t allowance(std::int64_t since_start_ns, std::size_t most) const;

    // When the next change is due, after the start; kNeverNs if there is none.
    [[nodiscard]] std::int64_t next_ns(std::int64_t since_start_ns) const;

  private:
    // If several overlap, the first counts.
    [[nodiscard]] const Impairment* active(std::int64_t since_start_ns) const;

    std::vector<Impairment> impairments_;
    const Impairment* now_ = nullptr;
    std::optional<ReadLimit> limit_;  // of the present impairment
    bool absent_ = false;
};

}  // namespace hydra
