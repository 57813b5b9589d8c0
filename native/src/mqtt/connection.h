// One connection of libmosquitto, driven by its owner, without the library's thread, and without its loop,
// whose select() is limited to 1024 descriptors.
#pragma once

#include <mosquitto.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/acceptance.h"
#include "common/clock.h"
#include "common/subscriber_connection.h"
#include "mqtt/control_messages.h"

namespace hydra {

// Whether a reason code rejects a message, and the word for it.
[[nodiscard]] bool rejects(int code);
[[nodiscard]] const char* reason_word(int code);

class MqttConnection {
  public:
    // Called only from within `read`.
    struct Handlers {
        std::function<void(const void* payload, std::size_t size)> message{};
        // For QoS 1 and 2, with the reason code.
        std::function<void(int message_id, int code)> answer{};
    };

    static constexpr std::int64_t kAnswerWithinNs = 10 * kSecondNs;

    // Connects, and waits until the server accepts. TransportError: it does not, or not in this time (the
    // kernel may wait longer for the TCP connection).
    MqttConnection(const std::string& name, const MqttStep& step, Handlers handlers,
                   std::int64_t answer_within_ns = kAnswerWithinNs);
    ~MqttConnection();
    MqttConnection(const MqttConnection&) = delete;
    MqttConnection& operator=(const MqttConnection&) = delete;

    // Returns when the server has accepted the subscriptions. TransportError: it does not.
    void subscribe(const std::vector<std::string>& filters, std::uint32_t qos);

    // The server rejects the message by its size, which the library knows: it is not sent.
    static constexpr int kTooLarge = -2;

    // The message's id; below 0 if the connection is lost, or kTooLarge.
    int publish(const std::string& topic, const void* payload, std::size_t size, std::uint32_t qos,
                bool retain);

    // Asks the server for an answer, which shows that it has handled everything that was sent before.
    void ask(const std::string& topic);
    [[nodiscard]] bool asked() const { return asked_ >= 0; }

    // Reads one packet, or the part of it that has arrived; with TLS all packets of one record. False: no
    // data is left, or the connection is lost.
    bool read();
    // Reads everything that is there, and keeps the connection alive.
    void read_all();

    // Keeps the connection alive if it is due: called on every turn of its owner, whatever there is to read.
    // The answer to a ping may wait behind data that a slow reader leaves, or that either side sends faster
    // than the other reads; the library would end the connection. So while data move or wait, another packet
    // takes the place of the library's ping.
    void keep_alive();

    [[nodiscard]] bool unsent() const { return mosquitto_want_write(mosq_.get()); }
    // Writes as much unsent data as the socket accepts.
    void write();

    // Waits at most timeout_ms for data to read, or for space to write if data is unsent.
    void wait(int timeout_ms) const;

    // Why the connection was lost, or "".
    [[nodiscard]] const std::string& lost() const { return lost_; }
    // Whether it was lost because this client sent nothing for longer than the keepalive allows.
    [[nodiscard]] bool was_silent() const { return was_silent_; }
    // The same as a word (acceptance.h), if it is lost.
    [[nodiscard]] const char* lost_reason() const { return lost_reason_; }

    // What is known of how the connection was made.
    [[nodiscard]] const ConnectPhases& phases() const { return phases_; }

    // The descriptor stays open after the connection is lost, so a waiter that still watches it never
    // watches another file.
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
    int dial(const MqttStep& step, const mosquitto_property* properties);
    void await(const std::function<bool()>& condition, const char* what);
    [[nodiscard]] std::string failure(const char* layer, const std::string& why) const;
    void judge(int code);
    void note_silence(std::int64_t now_ns);
    void lose(const std::string& why, int code = 0);
    void let_go();
    [[nodiscard]] bool readable();

    Handlers handlers_;
    std::string server_;
    bool has_tls_;
    std::unique_ptr<mosquitto, Destroy> mosq_;
    int fd_ = -1;
    int accepted_ = -1;      // the code of CONNACK
    bool received_ = false;  // whether the last read had a message
    Grant granted_;
    int asked_ = -1;  // the message id of the question; -1: it was answered
    std::string lost_;
    const char* lost_reason_ = reason::kConnectionLost;
    std::int64_t answer_within_ns_;
    ConnectPhases phases_;
    std::int64_t keepalive_ns_;  // 0: no pings
    std::string unused_;         // a topic without subscribers
    std::int64_t look_at_ns_ = 0;
    std::int64_t stirred_ns_ = 0;              // when the last packet in place of a ping was sent
    std::int64_t served_ns_ = monotonic_ns();  // when the library last had the time to ping
    bool alive_ = false;  // whether something was read, or the socket accepted a message, since the last look
    std::int64_t late_ns_ = 0;  // when it last had it too late for the server; 0: never
    bool was_silent_ = false;
};

}  // namespace hydra
