// A relay's decisions: what clients get a command and when it is resent, what answers are gathered, and what
// is answered from memory. No clock, no file and no socket: the times are given, and RelayOutputs sends.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/client_connections.h"
#include "common/clock.h"
#include "common/command_replies.h"
#include "common/group_replies.h"
#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"
#include "common/registration.h"
#include "common/report_batches.h"
#include "common/time_series.h"

namespace hydra {

// Sends what a relay decides to send.
class RelayOutputs {
  public:
    virtual ~RelayOutputs() = default;

    // To the clients of one connection.
    virtual void to_client(const std::string& name, const std::string& frame) = 0;
    // To the controller.
    virtual void to_controller(const FromClient& message) = 0;
    virtual void to_controller(const BatchHead& head, const std::string& payload) = 0;
    // To the parent: kill these clients, unless their incarnation is above this one.
    virtual void kill(const Ids& ids, std::uint32_t incarnation) = 0;
};

class RelayState {
  public:
    // `ids`: the clients of the group, without gaps.
    RelayState(Ids ids, Role role, RelayOutputs& ends);

    // Obeys a message from the controller; `frame` is the message's frame.
    void obey(const FromController& message, std::string_view frame, std::int64_t now_ns);

    // Handles a message from a connection of clients.
    void take_message(const std::string& name, FromClient&& message, std::int64_t now_ns);

    // Takes the reports of a batch from a connection of clients, all or none. Throws ProtocolError.
    void take_batch(const std::string& name, const BatchHead& head, std::string&& payload,
                    std::int64_t now_ns);

    // Records that a process of clients has ended.
    void take_exit(const ChildExit& exit, std::int64_t now_ns);

    // Does what is due.
    void work(std::int64_t now_ns);
    // When something will be due next; kNeverNs: nothing.
    [[nodiscard]] std::int64_t due_ns() const;

    // Sends the answers and reports that wait for others.
    void end();

    [[nodiscard]] bool welcomed() const { return welcome_.has_value(); }
    // Whether all clients have to quit: then only their end is awaited.
    [[nodiscard]] bool dismissed() const { return dismissed_; }

  private:
    void obey(const Welcome& welcome, std::int64_t now_ns);
    void obey(const Quit& quit, std::int64_t now_ns);
    void obey(const Evict& evict);
    void obey(const Ids& named, Command&& command, std::int64_t now_ns);
    void begin(std::uint32_t epoch);
    void repeat(const Ids& answered, const Command& command, std::int64_t now_ns);

    void take_message(ClientConnection& connection, const Ack& ack, std::int64_t now_ns);
    void take_message(ClientConnection& connection, const Ready& ready, std::int64_t now_ns);
    void take_message(ClientConnection& connection, const Progress& progress, std::int64_t now_ns);
    void take_message(ClientConnection& connection, const TimeSeries& time_series, std::int64_t now_ns);
    void take_message(ClientConnection& connection, Report&& report, std::int64_t now_ns);
    void take_message(ClientConnection& connection, const Error& error, std::int64_t now_ns);
    template <typename Other>
    void take_message(ClientConnection&, const Other&, std::int64_t) {}
    void introduce(const std::string& name, const Hello& hello, std::int64_t now_ns);
    void welcome(const ClientConnection& connection);
    void dismiss(ClientConnection& connection, std::int64_t now_ns);
    void left(ClientConnection& connection);

    void complete(Step step);
    void send_time_series();
    void send_batch(const ReportBatch* batch);
    void send_joined(const Ids& ids);
    void resend_quits(std::int64_t now_ns);
    void send_command(const Ids& ids, const std::string& body);

    Ids ids_;
    Role role_;
    RelayOutputs& ends_;
    std::optional<Welcome> welcome_;
    bool dismissed_ = false;
    ClientConnections connections_;
    PendingRegistrations joining_;
    std::vector<ChildExit> final_exits_;      // of clients that are not replaced
    std::int64_t quit_resend_ns_ = kNeverNs;  // the earliest of all connections, or earlier

    // In the current epoch:
    CommandReplies commands_;
    GroupReplies answers_;
    ReportBatches batching_;
    // The clients' time series of the step: outside its cohort, and in it.
    std::array<TimeSeriesSum, 2> time_series_{};
    std::int64_t time_series_at_ns_ = kNeverNs;  // when the sums are sent
};

}  // namespace hydra
