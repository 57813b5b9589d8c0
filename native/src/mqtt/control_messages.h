// What a client is told of MQTT: the `system` object of configure, and what follows from it. (As
// hydra/mqtttest/settings.py.)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/messages/from_controller.h"

namespace hydra {

struct MqttStep {
    std::string host;
    std::uint32_t port = 0;
    std::string topic;  // a publisher's messages go to topic/ID, so that the server keeps their order
    std::uint32_t qos = 0;
    bool retain = false;
    bool shared = false;  // within a group; probes and end markers then have a topic of their own
    std::uint32_t max_inflight = 0;
    std::uint32_t keepalive = 0;  // seconds; 0: no pings
    bool clean_session = true;
    std::string protocol;
    std::string username;  // "": none is sent
    std::string password;

    bool operator==(const MqttStep&) const = default;

    static void describe(auto& it, auto& fields) {
        fields.required("host", it.host);
        fields.required("port", it.port, Whole{1, 65'535});
        fields.required("topic", it.topic);
        fields.required("qos", it.qos, Whole{0, 2});
        fields.required("retain", it.retain);
        fields.required("shared", it.shared);
        fields.required("max_inflight", it.max_inflight, Whole{1, 65'535});
        fields.required("keepalive", it.keepalive, Whole{0, 65'535});
        fields.required("clean_session", it.clean_session);
        fields.required("protocol", it.protocol, OneOf{"3.1.1", "5"});
        fields.optional("username", it.username);
        fields.optional("password", it.password);
    }
};

// Of a report: whether the client's connection to the server was lost.
struct MqttReport {
    std::uint32_t lost_connections = 0;

    static void describe(auto& it, auto& fields) { fields.required("lost_connections", it.lost_connections); }
};

// TransportError: the command holds none, or one that cannot be; the text names what.
MqttStep step_of(const Configure& command);

[[nodiscard]] std::string topic_of(const MqttStep& step, Id publisher);

// Where a publisher's probes and end markers go.
[[nodiscard]] std::string signals_of(const MqttStep& step, Id publisher);

// What a subscriber subscribes to. TransportError: to be shared, and it is in no group.
[[nodiscard]] std::vector<std::string> filters(const MqttStep& step, const std::string& group,
                                               const std::vector<PublisherEndpoint>& publishers);

// Under which the server will know a client: nobody else's, in whatever process and run.
[[nodiscard]] std::string new_client_name(const MqttStep& step);

}  // namespace hydra
