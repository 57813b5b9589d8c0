// What the clients of a group have answered in an epoch: gathered into few messages for the controller, and
// kept for when it asks again. Pure: the times are given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "common/by_client.h"
#include "common/command_replies.h"
#include "common/messages/from_client.h"
#include "common/reply_aggregation.h"

namespace hydra {

// The step of a command's word in an `ack`; none where it has no such step.
std::optional<Step> step_of(std::string_view word);

class GroupReplies {
  public:
    // `say`: to the controller.
    GroupReplies(const Ids& ids, std::function<void(const FromClient&)> say);

    // Everything of the epoch before is forgotten, but what went wrong in it is said.
    void begin(std::uint32_t epoch);

    // This client was told another command of its kind: what it answered before is no answer to it.
    void ask(Id client, const Command& command);
    // It is gone. What it has reported stays.
    void left(Id client);

    void acknowledge(Id client, Step step, std::int64_t now_ns);
    // It is ready, and where; whether that is new.
    bool prove(Id client, const std::string& endpoint, std::int64_t now_ns);
    // The first of its kind is said at once, its like together.
    void complain(const Ids& clients, const Error& error, std::int64_t now_ns);
    // This was its answer to the step's command.
    void fail(Id client, Step step, const Error& error);

    // Says again what it has acknowledged, or that it failed at it.
    void repeat(Id client, Step step, std::int64_t now_ns);
    // Says again why it has no report.
    void repeat_complaint(Id client, std::int64_t now_ns) {
        complaints_.add(*of_[client].complaint, client, now_ns);
    }

    [[nodiscard]] bool cohort(Id client) const { return of_[client].cohort; }
    // A publisher's; null: it has none.
    [[nodiscard]] std::shared_ptr<const Report>& report(Id client) { return of_[client].report; }

    // Says what waits: acknowledgements, proofs where nobody else has to prove anything, complaints.
    void say_acks(Step step);
    void say_proofs();
    void say_complaints();
    void say_all();
    // Says what has waited for long enough.
    void go_on(std::int64_t now_ns);
    [[nodiscard]] std::int64_t due_ns() const;

  private:
    using Complaint = std::tuple<std::uint32_t, std::string, bool>;  // epoch, text, fatal
    using Readiness = std::string;                                   // the endpoint

    struct Client {
        bool failed = false;   // it could not be configured
        bool awaited = false;  // its readiness is
        std::optional<Readiness> ready;
        std::optional<Complaint> complaint;  // its last answer that was one
        // What stays when it leaves:
        bool cohort = false;  // it belongs to the step's cohort
        std::shared_ptr<const Report> report;
    };

    void await_no_longer(Client& client);
    void say_readies();

    std::function<void(const FromClient&)> say_;
    std::uint32_t epoch_ = 0;
    ByClient<Client> of_;
    std::size_t unready_ = 0;                                  // clients whose readiness is awaited
    std::array<ReplyAggregator<std::uint32_t>, kSteps> acks_;  // by epoch
    std::array<std::int64_t, kSteps> acked_ns_{};              // when the latest client did
    ReplyAggregator<Readiness> readies_;
    ReplyAggregator<Complaint> complaints_;
    std::set<Complaint> known_complaints_;
};

}  // namespace hydra
