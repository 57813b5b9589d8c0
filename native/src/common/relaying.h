// What a relay makes of what the controller and its clients say: whom it tells what and when again, what it
// gathers, and what it says from memory. No clock, no file and no socket: the times are given, and others
// carry what is said.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/batch_columns.h"
#include "common/clock.h"
#include "common/gathering.h"
#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"

namespace hydra {

// The commands of a step, in their order.
enum class Step { configure, start, stop, finish };
inline constexpr std::size_t kSteps = 4;

// How what a relay says gets to where it belongs.
class RelayEnds {
  public:
    virtual ~RelayEnds() = default;

    // To the clients of one connection.
    virtual void tell(const std::string& connection, const std::string& frame) = 0;
    // To the controller.
    virtual void say(const FromClient& message) = 0;
    virtual void say(const BatchHead& head, const std::string& payload) = 0;
    // To the parent: these are to be killed, unless their incarnation is above that one.
    virtual void kill(const Ids& ids, std::uint32_t incarnation) = 0;
};

class Relaying {
  public:
    // `ids`: of the group, without gaps.
    Relaying(Ids ids, Role role, RelayEnds& ends);

    // A message from the controller, and the frame that it came in.
    void obey(const FromController& message, std::string_view frame, std::int64_t now_ns);

    // A message from one of the connections of clients.
    void hear(const std::string& connection, FromClient&& message, std::int64_t now_ns);

    // A process of clients has ended.
    void take_exit(const ChildExit& exit, std::int64_t now_ns);

    // Does what is due.
    void go_on(std::int64_t now_ns);
    // When something is due again; kNeverNs: nothing.
    [[nodiscard]] std::int64_t due_ns() const;

    // Says what waits for others; reports, too.
    void say_answers();
    void say_everything();

    [[nodiscard]] bool welcomed() const { return welcome_.has_value(); }
    // Whether everybody was told to quit: nothing but the end is awaited.
    [[nodiscard]] bool dismissed() const { return dismissed_; }

  private:
    // What an epoch asks of clients, whoever they are. Equal commands are one object.
    struct Command {
        Step step;
        std::uint32_t epoch;
        std::string body;            // the message without ids
        bool ready_follows = false;  // of configure
        bool cohort = false;         // likewise: they belong to it
    };

    // A process of clients, by its connection.
    struct Process {
        std::string connection;
        Ids ids;
        std::uint32_t incarnation = 0;
        std::uint32_t pid = 0;
        std::int64_t quit_again_ns = kNeverNs;  // of one that was told to quit
        bool ended = false;                     // what it said last may come after that
    };

    // What one client was told, and whether it has answered; in that case it is told no more.
    struct Told {
        std::shared_ptr<const Command> command;
        bool answered = false;
        std::int64_t again_ns = kNeverNs;
        // Until the ping with this time is answered, what comes answers the command before; 0: none is.
        std::int64_t deaf_until = 0;
    };

    using Complaint = std::tuple<std::uint32_t, std::string, bool>;  // epoch, text, fatal
    using Readiness = std::string;                                   // the endpoint

    struct Client {
        std::shared_ptr<Process> process;  // none: it is not there
        std::uint32_t announced = 0;       // how often, to the controller
        std::int64_t announced_ns = 0;     // when it was last
        std::uint32_t unwelcomed = 0;      // of these, how often without a welcome since
        // A welcome means this one, and no earlier one of its id, once it was announced so often.
        std::uint32_t named_from = 1;
        bool known = false;  // the controller has welcomed it
        std::array<Told, kSteps> told;
        bool failed = false;   // it could not be configured
        bool awaited = false;  // its readiness is
        std::optional<Readiness> ready;
        std::optional<Complaint> complaint;  // the last of this epoch
        // What stays when it leaves:
        bool cohort = false;                   // it belongs to the step's cohort
        std::shared_ptr<const Report> report;  // of a publisher
        bool reported = false;                 // of a subscriber: it is in a batch
        std::size_t batch = 0;                 // which; past the end: the next one
    };

    struct KeptBatch {
        BatchHead head;
        std::string payload;
    };

    void obey(const Welcome& welcome, std::int64_t now_ns);
    void obey(const Quit& quit, std::int64_t now_ns);
    void obey(const Evict& evict);
    void tell_again(Step step, std::int64_t now_ns);
    void obey(const Ids& named, Command&& told, std::int64_t now_ns);
    void begin(std::uint32_t epoch);
    [[nodiscard]] bool unheeded(const Client& client, Step step) const;
    void order(Client& client, const std::shared_ptr<const Command>& command, std::int64_t deaf_until,
               std::int64_t now_ns);
    std::int64_t ping(const std::shared_ptr<Process>& process,
                      std::map<std::shared_ptr<Process>, std::int64_t>& pinged);
    void repeat(Id id, Step step, std::int64_t now_ns, std::set<std::size_t>& batches);

    void hear(Process& process, const Ack& ack, std::int64_t now_ns);
    void hear(Process& process, const Ready& ready, std::int64_t now_ns);
    void hear(Process& process, const Progress& progress, std::int64_t now_ns);
    void hear(Process& process, Report&& report, std::int64_t now_ns);
    void hear(Process& process, Reports&& reports, std::int64_t now_ns);
    void hear(Process& process, const Error& error, std::int64_t now_ns);
    template <typename Other>
    void hear(Process&, const Other&, std::int64_t) {}
    void take_report(const Process& process, Id id, SubscriberReport&& report, std::int64_t now_ns);
    void introduce(const std::string& connection, const Hello& hello, std::int64_t now_ns);
    void welcome(const Process& process);
    void dismiss(Process& process, std::int64_t now_ns);

    bool answer(Client& client, Step step);
    [[nodiscard]] static bool deaf(const Client& client, Step step);
    void await_no_longer(Client& client);
    void depart(const std::shared_ptr<Process>& process);
    void complete(Step step);
    void say_acks(Step step);
    void say_readies();
    void say_complaints();
    void say_batch();
    void say_joined(std::int64_t now_ns);
    void tell_again(std::int64_t now_ns);
    void tell(const Ids& ids, const std::string& body);

    [[nodiscard]] bool ours(Id id) const { return id >= ids_.front() && id <= ids_.back(); }
    Client& client(Id id) { return clients_[id - ids_.front()]; }
    // Those of these that are there; none named: all.
    [[nodiscard]] Ids present(const Ids& named) const;
    // Those of these whom the process carries.
    [[nodiscard]] Ids carried(const Process& process, const Ids& named);
    // Likewise, or whom it carried until it ended.
    [[nodiscard]] Ids own(const Process& process, const Ids& named);

    Ids ids_;
    Role role_;
    RelayEnds& ends_;
    std::optional<Welcome> welcome_;
    bool dismissed_ = false;
    std::vector<Client> clients_;
    std::size_t there_ = 0;                                      // of them
    std::map<std::string, std::shared_ptr<Process>> processes_;  // by connection
    std::vector<ChildExit> gone_;                                // of those that are not replaced

    // Of the current epoch:
    std::uint32_t epoch_ = 0;
    std::map<std::string, std::shared_ptr<const Command>> commands_;  // by body
    std::array<std::size_t, kSteps> unanswered_{};                    // clients that were told and have not
    std::size_t unready_ = 0;                                         // clients whose readiness is awaited
    std::array<Gathering<std::uint32_t>, kSteps> acks_;               // by epoch
    std::array<std::int64_t, kSteps> acked_ns_{};                     // when the latest client did
    Gathering<Readiness> readies_;
    Gathering<Complaint> complaints_;
    std::set<Complaint> known_complaints_;
    BatchBuilder reports_;
    std::int64_t reports_due_ns_ = kNeverNs;
    std::vector<KeptBatch> batches_;

    std::int64_t pings_ = 0;               // to clients
    std::int64_t again_ns_ = kNeverNs;     // the earliest that somebody is told something again, or before
    std::int64_t announce_ns_ = kNeverNs;  // when those are announced that are new
    std::int64_t announce_again_ns_ = kNeverNs;  // and those that the controller has not welcomed
};

}  // namespace hydra
