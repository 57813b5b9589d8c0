// An end of the control channel: a relay's to the controller, or one to the relay for all clients of a
// process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"
#include "common/outer_line.h"

namespace hydra {

// What a connection says of itself.
struct Introduction {
    Ids ids;  // ascending
    Role role = Role::publisher;
    std::string group;
    std::uint32_t incarnation = 0;
    std::string implementation;
    std::map<std::string, std::string> versions{};  // a relay's
};

class Channel {
  public:
    // Of a relay:
    Channel(OuterLine& line, const Introduction& introduction);
    // Of clients; their relay says for all of them where they are.
    Channel(Line& line, const Introduction& introduction);

    // Says hello if that is due: at once, then every 2 s until there is a welcome, for the one or the other
    // may have been lost. When it is due again, kNeverNs after the welcome.
    std::int64_t introduce(std::int64_t now_ns);

    // The next message that is about any of our clients; never waits. Clients' pings are answered here, and a
    // welcome is taken note of. A command that was given again while it was obeyed is left out, for its
    // answer is younger: a configuration that fails after ten seconds would fail once more for each
    // repetition. None: nothing is left, and fd() becomes readable anew when there is.
    std::optional<FromController> receive();

    // The frame of the message that receive() has just returned.
    [[nodiscard]] std::string_view last_frame() const { return last_; }

    // As the line does it: a relay's never waits.
    void send(const FromClient& message);
    void send(const BatchHead& head, const std::string& payload);

    // The same, unless it is longer than a message may be: then nothing is sent. Whether it was.
    bool send_if_fits(const FromClient& message);

    // These clients obeyed the command.
    void acknowledge(Ids ids, std::uint32_t epoch, const char* command, std::int64_t echo = 0);

    void answer(const Ping& ping);

    // These clients failed at what `epoch` asked of them (0: at all); of the text, as much as a message
    // holds.
    void complain(Ids ids, std::uint32_t epoch, const std::string& what, bool fatal = false);

    // Those of our clients that a message is about.
    [[nodiscard]] Ids ours(const Ids& named) const;

    // To be watched edge-triggered; `stir` when it has become readable.
    [[nodiscard]] int fd() const { return line_.fd(); }
    // The same by a waiter; null: no longer.
    void watch(Waiter* waiter, std::uint64_t token) { line_.watch(waiter, token); }
    void stir() { stirred_ = true; }
    [[nodiscard]] bool stirred() const { return stirred_; }

    // Whether the other end has been silent for longer than it said it ever would be.
    [[nodiscard]] bool silent(std::int64_t now_ns);
    // When it will have been, if nothing comes; kNeverNs: it may be silent for ever.
    [[nodiscard]] std::int64_t silent_at_ns() const;

    // What becomes of the connection; of relays only.
    [[nodiscard]] ConnectionWatch* connection() { return connection_; }

    [[nodiscard]] const Ids& ids() const { return ids_; }

  private:
    void send_frame(const std::string& frame, bool more = false);

    Line& line_;
    Ids ids_;
    Hello hello_;
    std::int64_t hello_due_ns_ = 0;
    ConnectionWatch* connection_ = nullptr;
    std::string last_;  // that receive() returned; empty when nothing was left after it
    // Sending, too, takes note of what has arrived, without the descriptor becoming readable again.
    bool stirred_ = true;
    std::uint64_t seq_ = 0;
    std::int64_t silence_ns_ = 0;
    std::int64_t heard_ns_;
};

}  // namespace hydra
