// NATS' `system` objects of the control channel. (Python: hydra/natstest/settings.py.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/client_tls.h"
#include "common/messages/from_controller.h"

namespace hydra {

enum class NatsConsumer { push, pull };

constexpr std::array<const char*, 2> words(NatsConsumer) {
    return {"push", "pull"};
}

enum class NatsAckPolicy { none, explicit_ };

constexpr std::array<const char*, 2> words(NatsAckPolicy) {
    return {"none", "explicit"};
}

// What a client sends to log in; the seed and the public name of an NKEY, and a JWT, are those of files.
struct NatsLogin {
    std::string username;
    std::string password;
    std::string token;
    std::string nkey;
    std::string seed;
    std::string jwt;
    bool operator==(const NatsLogin&) const = default;

    static void describe(auto& it, auto& fields) {
        fields.optional("username", it.username);
        fields.optional("password", it.password);
        fields.optional("token", it.token);
        fields.optional("nkey", it.nkey);
        fields.optional("seed", it.seed);
        fields.optional("jwt", it.jwt);
    }
};

// The object of `configure`: where the step's data goes, and the settings. `stream` is empty in core mode;
// `first` is
// the stream sequence that the step's first message gets.
struct NatsStep {
    std::vector<std::string> servers;
    std::string subject;
    std::string stream;
    std::uint64_t first = 1;
    NatsConsumer consumer = NatsConsumer::push;
    bool publish_acks = true;
    NatsAckPolicy ack_policy = NatsAckPolicy::explicit_;
    std::int32_t pending_messages = 65'536;
    std::int32_t pending_bytes = 64 * 1024 * 1024;
    std::int32_t max_ack_pending = 1000;
    std::int32_t fetch_batch = 100;
    std::int32_t publish_window = 4000;
    std::optional<NatsLogin> login;
    std::optional<ClientTls> tls;
    bool operator==(const NatsStep&) const = default;

    static constexpr Whole kLimit{1, INT32_MAX};
    static void describe(auto& it, auto& fields) {
        fields.required("servers", it.servers);
        fields.required("subject", it.subject);
        fields.optional("stream", it.stream);
        fields.optional("first", it.first, Whole{1, INT64_MAX});
        fields.optional("consumer", it.consumer);
        fields.optional("publish_acks", it.publish_acks);
        fields.optional("ack_policy", it.ack_policy);
        fields.optional("pending_messages", it.pending_messages, kLimit);
        fields.optional("pending_bytes", it.pending_bytes, kLimit);
        fields.optional("max_ack_pending", it.max_ack_pending, kLimit);
        fields.optional("fetch_batch", it.fetch_batch, kLimit);
        fields.optional("publish_window", it.publish_window, kLimit);
        fields.optional("login", it.login);
        fields.optional("tls", it.tls);
    }
};

// The object of `finish`: the stream's last sequence after every publisher had reported.
struct NatsEnd {
    std::uint64_t last = 0;

    static void describe(auto& it, auto& fields) { fields.required("last", it.last); }
};

// The object of reports: how often a subscription became too slow for its pending limits, the messages that
// the library dropped because of it, and how often the connection was lost, with the reason of the first loss
// (of a subscriber; left out if there was none).
struct NatsTrouble {
    std::uint64_t slow_consumers = 0;
    std::uint64_t dropped = 0;
    std::uint64_t disconnects = 0;
    std::optional<std::string> lost_why{};

    static void describe(auto& it, auto& fields) {
        fields.required("slow_consumers", it.slow_consumers);
        fields.required("dropped", it.dropped);
        fields.required("disconnects", it.disconnects);
        fields.present("lost_why", it.lost_why);
    }
};

// TransportError: the command's object is not an object of NATS.
NatsStep nats_step(const Configure& command);

}  // namespace hydra
