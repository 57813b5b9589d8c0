// MQTT's `system` object of `configure`, and what follows from it. (Python: hydra/mqtttest/settings.py.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/client_tls.h"
#include "common/messages/from_controller.h"
#include "common/traffic.h"

namespace hydra {

struct MqttStep {
    std::string host;
    std::uint32_t port = 0;
    std::string topic;  // messages go to topic/ID of their publisher; with several topics, to topic/NUMBER
    std::uint32_t qos = 0;
    bool retain = false;
    bool shared = false;  // in a consumer group; probes and end markers then have their own topic
    std::uint32_t max_inflight = 0;
    std::uint32_t keepalive = 0;  // seconds; 0: no pings
    bool clean_session = true;
    std::string protocol;
    std::string username;  // "": no user name is sent
    std::string password;
    std::optional<ClientTls> tls;

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
        fields.optional("tls", it.tls);
    }
};

// The object of a report: whether the client's connection to the server was lost, and by its own silence.
struct MqttReport {
    std::uint32_t lost_connections = 0;
    std::optional<std::uint32_t> lost_by_silence{};  // left out if it was not
    std::optional<std::string> lost_why{};           // of a subscriber, if it was lost

    static MqttReport of(bool lost, bool silent) {
        return {.lost_connections = lost ? 1U : 0U,
                .lost_by_silence = silent ? std::optional(1U) : std::nullopt};
    }
    static void describe(auto& it, auto& fields) {
        fields.present("lost_by_silence", it.lost_by_silence);
        fields.required("lost_connections", it.lost_connections);
        fields.present("lost_why", it.lost_why);
    }
};

// TransportError: the command has no such object, or an invalid one; the text names the field.
MqttStep step_of(const Configure& command);

// The topics of a publisher's messages, by number.
[[nodiscard]] std::vector<std::string> topics_of(const MqttStep& step, Id publisher, std::uint32_t topics);

// The topics of a publisher's probes and end markers: the signalled ones of its messages, or one of their
// own.
[[nodiscard]] std::vector<std::string> signals_of(const MqttStep& step, Id publisher,
                                                  const std::vector<std::string>& topics,
                                                  std::uint32_t signalled);

// The filters of a subscriber. TransportError: subscriptions are shared, but it is in no consumer group.
[[nodiscard]] std::vector<std::string> filters(const MqttStep& step, const std::string& group,
                                               const std::vector<PublisherEndpoint>& publishers,
                                               const TopicFilter& topics);

// A new name under which the server knows a client; no other client of any process or run has it.
[[nodiscard]] std::string new_client_name(const MqttStep& step);

}  // namespace hydra
