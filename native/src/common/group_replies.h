// The answers of a group's clients in an epoch: gathered into few messages for the controller, and kept for
// repeated commands. Pure: the times are given.
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
#include <utility>

#include "common/by_client.h"
#include "common/command_replies.h"
#include "common/messages/from_client.h"
#include "common/reply_aggregation.h"

namespace hydra {

// The step of a command's word in an `ack`; none if there is no such step.
std::optional<Step> step_of(std::string_view word);

class GroupReplies {
  public:
    // `send` sends a message to the controller.
    GroupReplies(const Ids& ids, std::function<void(const FromClient&)> send);

    // Sends the errors that wait, and discards everything of the previous epoch.
    void begin(std::uint32_t epoch);

    // The client got another command of this kind: its earlier answer does not count for it.
    void ask(Id client, const Command& command);
    // The client has ended. Its report stays.
    void left(Id client);

    void acknowledge(Id client, Step step, std::uint32_t number, std::int64_t now_ns);
    // Records a client's `ready`; returns whether it is new.
    bool prove(Id client, const Ready& ready, std::int64_t now_ns);
    // The first error of a kind is sent at once; equal ones are gathered.
    void complain(const Ids& clients, const Error& error, std::int64_t now_ns);
    // This error is the client's answer to the step's command.
    void fail(Id client, Step step, const Error& error);

    // Sends the client's acknowledgement of this command again, or its error.
    void repeat(Id client, const Command& command, std::int64_t now_ns);
    // Sends the error again that the client has instead of a report.
    void repeat_complaint(Id client, std::int64_t now_ns) {
        complaints_.add(*of_[client].complaint, client, now_ns);
    }

    [[nodiscard]] bool cohort(Id client) const { return of_[client].cohort; }
    // A publisher's report; null if it has none.
    [[nodiscard]] std::shared_ptr<const Report>& report(Id client) { return of_[client].report; }

    // Send what waits: acknowledgements, `ready` if all clients are ready, errors, or all of these.
    void send_acks(Step step);
    void send_complete_readiness();
    void send_errors();
    void send_all();
    // Sends what has waited long enough.
    void work(std::int64_t now_ns);
    [[nodiscard]] std::int64_t due_ns() const;

  private:
    using Complaint =
        std::tuple<std::uint32_t, std::uint32_t, std::string, bool>;  // epoch, number, text, fatal
    using Readiness = std::pair<std::uint32_t, std::string>;          // number, endpoint

    struct Client {
        bool failed = false;   // it could not be configured
        bool awaited = false;  // its `ready` is missing
        std::optional<Readiness> ready;
        std::optional<Complaint> complaint;  // its last error
        // Kept after the client has ended:
        bool cohort = false;  // it belongs to the step's cohort
        std::shared_ptr<const Report> report;
    };

    void await_no_longer(Client& client);
    void send_readiness();

    std::function<void(const FromClient&)> send_;
    std::uint32_t epoch_ = 0;
    ByClient<Client> of_;
    std::size_t unready_ = 0;                                  // clients whose `ready` is missing
    std::array<ReplyAggregator<std::uint32_t>, kSteps> acks_;  // by the command's number
    std::array<std::int64_t, kSteps> acked_ns_{};              // the time of the latest acknowledgement
    ReplyAggregator<Readiness> readies_;
    ReplyAggregator<Complaint> complaints_;
    std::set<Complaint> known_complaints_;
};

}  // namespace hydra
