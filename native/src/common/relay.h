// A group's relay: the connection to the controller, and those of the group's clients. relay_state.h has its
// decisions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/control_client.h"
#include "common/inner_socket.h"
#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"
#include "common/relay_state.h"
#include "common/watch_schedule.h"

namespace hydra {

// A client process that ended, written by the parent to the relay; shorter than PIPE_BUF, so it is never
// torn.
struct Death {
    Id first_id;
    std::uint32_t count;
    std::uint32_t incarnation;
    std::uint32_t pid;
    int status;
    bool replaced;
};

// A client that has to be killed: its id, and the highest incarnation to kill.
struct Kill {
    Id id;
    std::uint32_t incarnation;
};

enum class RelayEnd {
    dismissed,          // the parent has closed its pipe
    not_welcomed,       // not welcomed in time
    controller_silent,  // the controller has been silent for too long
    controller_ended,   // the controller's process has ended
};

class Relay final : private RelayOutputs {
  public:
    // The group's parent writes a Death to one pipe, and reads a Kill from the other.
    Relay(ControlClient& control, InnerSocket& inner, Role role, int deaths, int kills);

    RelayEnd run(std::int64_t welcome_by_ns);

  private:
    void to_client(const std::string& connection, const std::string& frame) override;
    void to_controller(const FromClient& message) override;
    void to_controller(const BatchHead& head, const std::string& payload) override;
    void kill(const Ids& ids, std::uint32_t incarnation) override;

    void take_from_controller();
    void take_from_clients();
    void take_last_messages();
    bool take_deaths();
    void write_kills();

    ControlClient& control_;
    InnerSocket& inner_;
    int deaths_;
    int kills_;
    std::vector<Kill> unwritten_;  // the pipe was full
    RelayState relaying_;
    WatchSchedule watching_;
};

}  // namespace hydra
