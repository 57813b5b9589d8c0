// A group's warden: tells the controller of its group's clients and of its host.
#pragma once

#include <cstdint>
#include <vector>

#include "common/channel.h"
#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"
#include "common/watching.h"

namespace hydra {

// What the parent tells the warden of a process that ended; shorter than PIPE_BUF, so it is never torn.
struct Death {
    Id first_id;
    std::uint32_t count;
    std::uint32_t incarnation;
    std::uint32_t pid;
    int status;
    bool replaced;
};

// Whom the warden was told to end: whoever has this id, and no higher incarnation.
struct Kill {
    Id id;
    std::uint32_t incarnation;
};

class Warden {
  public:
    // The group's parent writes a Death to one pipe, and reads a Kill from the other.
    Warden(Channel& channel, Role role, int deaths, int kills);

    // Until the parent closes its pipe; returns the exit code.
    int run();

  private:
    void obey(const FromController& message);
    void end_clients(const Quit& quit);
    bool take_death();

    Channel& channel_;
    int deaths_;
    int kills_;
    std::vector<ChildExit> gone_;  // those that are not replaced
    Watching watching_;
};

}  // namespace hydra
