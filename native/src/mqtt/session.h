// One connection of libmosquitto, driven by its owner: neither its thread nor its loop, which select() bounds
// to 1024 descriptors.
#pragma once

#include <mosquitto.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mqtt/control_messages.h"

namespace hydra {

class Session {
  public:
    // Called from within `read`, and from nowhere else.
    struct Handlers {
        std::function<void(const void* payload, std::size_t size)> message{};
        std::function<void(int message_id, bool refused)> answer{};  // of QoS 1 and 2
    };

    // Connected, and let in by the server. TransportError: it is not to be.
    Session(const std::string& name, const MqttStep& step, Handlers handlers);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Returns when the server has agreed. TransportError: it has not.
    void subscribe(const std::vector<std::string>& filters, std::uint32_t qos);

    // The message's id; below 0 if the connection is lost.
    int publish(const std::string& topic, const void* payload, std::size_t size, std::uint32_t qos,
                bool retain);

    // Takes one packet, or what has come of one. False: nothing more is there, or the connection is lost.
    bool read();

    // Pings the server if the keepalive asks for it; what `read` does where nothing is there.
    void ping_if_silent();

    [[nodiscard]] bool unsent() const { return mosquitto_want_write(mosq_.get()); }
    // As much of what is unsent as the socket takes.
    void write();

    // Waits at most timeout_ms for something to read, and for room to write where something is unsent.
    void wait(int timeout_ms) const;

    // Why there is no connection any more, or "".
    [[nodiscard]] const std::string& lost() const { return lost_; }

    // Its number stays taken when the connection is lost, so that whoever still watches it watches nobody
    // else's.
    [[nodiscard]] int fd() const { return fd_; }

  private:
    struct Destroy {
        void operator()(mosquitto* it) const { mosquitto_destroy(it); }
    };
    struct Grant {
        int message_id = -1;
        std::vector<int> codes{};
    };

    void connect(const MqttStep& step);
    void await(const std::function<bool()>& condition, const char* what);
    void judge(int code);
    void lose(const std::string& why);
    void let_go();
    [[nodiscard]] bool readable();

    Handlers handlers_;
    std::string server_;
    std::unique_ptr<mosquitto, Destroy> mosq_;
    int fd_ = -1;
    int accepted_ = -1;  // the code of CONNACK
    Grant granted_;
    std::string lost_;
    std::int64_t ping_at_ns_ = 0;
};

}  // namespace hydra
