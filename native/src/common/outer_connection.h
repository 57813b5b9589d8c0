// A relay's end of its connection to the controller: a DEALER with CURVE.
#pragma once

#include <zmq.hpp>

#include "common/controller_liveness.h"
#include "common/environment.h"
#include "common/frame_connection.h"

namespace hydra {

class OuterConnection : public FrameConnection {
  public:
    // The destructor waits up to a second until sent frames have left.
    OuterConnection(zmq::context_t& context, const Credentials& credentials);

    std::optional<std::string> receive() override;
    // Never waits.
    void send(std::string_view frame, bool more = false) override;
    [[nodiscard]] int fd() const override { return fd_; }
    [[nodiscard]] bool readable() const override;

    // The state of the connection.
    [[nodiscard]] ControllerLiveness& liveness() { return liveness_; }

  private:
    zmq::socket_t socket_;
    ControllerLiveness liveness_;
    int fd_ = -1;
};

}  // namespace hydra
