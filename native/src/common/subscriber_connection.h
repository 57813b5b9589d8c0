// The connection of one subscriber in a step that measures connecting: when to try, and what became of it.
// Pure, time is passed in: readings of CLOCK_MONOTONIC. (Python: hydra/client/subscriber_connection.py.)
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/messages/from_controller.h"

namespace hydra {

// What a library reveals of a connection that it has made; 0 and none: it does not.
struct ConnectPhases {
    std::int64_t connected_ns = 0;  // when the server had accepted the client, login included
    bool subscribed = false;        // whether the server has confirmed the subscription
    std::optional<std::int64_t> tcp_us{};
    std::optional<std::int64_t> tls_us{};
    std::optional<std::int64_t> login_us{};
};

struct Disconnection {
    std::int64_t lost_ns = 0;
    std::int64_t back_ns = 0;  // 0: it never ended
    std::uint64_t attempts = 0;
};

class SubscriberConnection {
  public:
    static constexpr std::int64_t kAttemptNs = 5 * kSecondNs;  // the time limit of one attempt
    static constexpr std::int64_t kAgainNs = kSecondNs;        // from a failed attempt to the next one

    SubscriberConnection(const Connect& connect, Id client);

    [[nodiscard]] bool connected() const { return connected_; }
    // When the next attempt is due; kNeverNs: it is connected, or has given up.
    [[nodiscard]] std::int64_t next_ns() const { return next_ns_; }
    // When it gives up; kNeverNs after it was connected once.
    [[nodiscard]] std::int64_t until_ns() const { return disconnections_.empty() ? until_ns_ : kNeverNs; }

    // Begins an attempt.
    void begin(std::int64_t now_ns);
    // Ends an attempt with an error of this text.
    void fail(std::int64_t now_ns, const std::string& why);
    void succeed(std::int64_t now_ns, const ConnectPhases& phases);
    // Gives up; `trying`: during an attempt, which counts as timed out.
    void give_up(bool trying);
    // A message has arrived; only the first one counts.
    void receive(std::int64_t now_ns);
    void lose(std::int64_t now_ns);

    // The object of the report, without what is not known. The library may have ended disconnections itself.
    // `limit`: the limit of this host at which the library failed to connect in the background, or "".
    [[nodiscard]] nlohmann::json report(const std::vector<Disconnection>& by_library,
                                        std::string_view limit = "") const;

  private:
    [[nodiscard]] std::int64_t since_due_us(std::int64_t now_ns) const;

    StepClock clock_;
    std::int64_t due_step_ns_;
    std::int64_t due_ns_;
    std::int64_t until_ns_;
    bool connected_;
    std::int64_t next_ns_;
    std::int64_t began_ns_ = 0;
    std::int64_t limit_ns_ = kAttemptNs;
    std::uint64_t attempts_ = 0;
    std::uint64_t refused_ = 0;
    std::string refused_why_;
    std::uint64_t timed_out_ = 0;
    std::map<std::string, std::uint64_t> local_;  // by the name of the limit
    std::optional<std::int64_t> lag_us_;
    std::optional<std::int64_t> ready_us_;
    std::optional<std::int64_t> first_us_;
    ConnectPhases phases_;
    std::vector<Disconnection> disconnections_;
};

// The time limit of an attempt of a client that gives up at `until_ns`.
std::int64_t attempt_limit_ns(std::int64_t now_ns, std::int64_t until_ns);

}  // namespace hydra
