// Whether the controller's process has ended: its connection is lost, and its host refuses a new one.
#pragma once

#include <cstdint>
#include <string>
#include <zmq.hpp>

#include "common/clock.h"

namespace hydra {

// The decision from a number of refusals; hydra/control/control_client.py has the same in Python.
class LostConnection {
  public:
    void lost(std::int64_t now_ns);
    void found();
    void attempted(std::int64_t now_ns, bool refused);

    // When to try to connect next; kNeverNs while there is a connection.
    [[nodiscard]] std::int64_t due_ns() const { return due_ns_; }
    [[nodiscard]] bool controller_ended() const;

  private:
    std::int64_t due_ns_ = kNeverNs;
    int in_a_row_ = 0;
};

// The decision for a real connection.
class ControllerLiveness {
  public:
    // Must be constructed before the socket connects.
    ControllerLiveness(zmq::context_t& context, zmq::socket_t& socket, std::string endpoint);
    ControllerLiveness(const ControllerLiveness&) = delete;
    ControllerLiveness& operator=(const ControllerLiveness&) = delete;
    ~ControllerLiveness();

    // Whether the process at the endpoint has ended. May wait for half a second, but not while there is a
    // connection.
    [[nodiscard]] bool controller_ended();

    // Must be watched edge-triggered; due_ns is when to ask again in any case.
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] std::int64_t due_ns() const { return refusals_.due_ns(); }

  private:
    void take_events();

    void* watched_;
    std::string endpoint_;
    zmq::socket_t events_;
    int fd_;
    LostConnection refusals_;
};

}  // namespace hydra
