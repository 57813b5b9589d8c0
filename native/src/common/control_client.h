// An end of the control channel: a relay's connection to the controller, or the connection of a process of
// clients to its relay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"
#include "common/outer_connection.h"

namespace hydra {

// A connection's content of `hello`.
struct Introduction {
    Ids ids;  // ascending
    Role role = Role::publisher;
    std::string group;
    std::uint32_t incarnation = 0;
    std::string implementation;
    std::map<std::string, std::string> versions{};  // sent by relays
};

class ControlClient {
  public:
    // For a relay.
    ControlClient(OuterConnection& connection, const Introduction& introduction);
    // For clients; their relay sends the facts about their host.
    ControlClient(FrameConnection& connection, const Introduction& introduction);

    // Sends `hello` if it is due: at once, then every 2 s until a welcome arrives, because either message may
    // be lost. Returns when it is due again, kNeverNs after the welcome.
    std::int64_t introduce(std::int64_t now_ns);

    // The next message that concerns a client of this connection; never waits. It records a welcome. It skips
    // repetitions that arrived while the command was obeyed, because the answer is newer: otherwise a
    // configuration that fails after ten seconds would fail again for each repetition. None: no message is
    // left, and fd() becomes readable when one arrives.
    std::optional<FromController> receive();

    // The frame of the message that receive() has just returned.
    [[nodiscard]] std::string_view last_frame() const { return last_; }

    // Sends like FrameConnection::send; a relay never waits.
    void send(const FromClient& message);
    void send(const BatchHead& head, const std::string& payload);

    // Sends the message, unless it is too long. Returns whether it was sent.
    bool send_if_fits(const FromClient& message);

    // Sends that these clients obeyed the command.
    template <typename Obeyed>
    void acknowledge(Ids ids, const Obeyed& command) {
        send_ack({.ids = std::move(ids),
                  .epoch = command.epoch,
                  .number = command.number,
                  .command = Obeyed::kType});
    }

    void answer(const Ping& ping);

    // Sends that these clients failed to obey the command, or another error; the text is cut to what fits
    // into a message.
    void refuse(Ids ids, const auto& command, const std::string& what) {
        complain({.ids = std::move(ids), .epoch = command.epoch, .number = command.number, .message = what});
    }
    void complain(Error error);

    // The clients of this connection that a message concerns.
    [[nodiscard]] Ids own_ids(const Ids& named) const;

    // Must be watched edge-triggered; call `stir` when it becomes readable.
    [[nodiscard]] int fd() const { return connection_.fd(); }
    // Has a waiter watch the connection; null: no longer.
    void watch(Waiter* waiter, std::uint64_t token) { connection_.watch(waiter, token); }
    void stir() { stirred_ = true; }
    [[nodiscard]] bool stirred() const { return stirred_; }

    // Whether the other end has been silent for longer than its `welcome` allows.
    [[nodiscard]] bool silent(std::int64_t now_ns);
    // When the silence becomes too long if nothing arrives; kNeverNs: never.
    [[nodiscard]] std::int64_t silent_at_ns() const;

    // The state of a relay's connection; null for clients.
    [[nodiscard]] ControllerLiveness* liveness() { return liveness_; }

    [[nodiscard]] const Ids& ids() const { return ids_; }

  private:
    void send_ack(Ack ack);
    void send_frame(const std::string& frame, bool more = false);

    FrameConnection& connection_;
    Ids ids_;
    Hello hello_;
    std::int64_t hello_due_ns_ = 0;
    ControllerLiveness* liveness_ = nullptr;
    std::string last_;  // last frame of receive(); empty if none was left after it
    // Sending also reads the socket's events, and the descriptor does not become readable again for them.
    bool stirred_ = true;
    std::uint64_t seq_ = 0;
    std::int64_t silence_ns_ = 0;
    std::int64_t received_ns_;
};

}  // namespace hydra
