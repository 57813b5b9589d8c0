#include "mqtt/connection.h"

#include <fcntl.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "common/local_limits.h"
#include "common/transport.h"
#include "mqtt/access.h"

namespace hydra {
namespace {

constexpr std::int64_t kLookEveryNs = kSecondNs;
constexpr std::uint32_t kSessionKeptS = 3600;
constexpr int kRefused = 0x80;  // reason codes from this on are refusals
constexpr int kNoLimit = 65'535;
// MQTT 5's reason of a server that has waited in vain for one and a half times the keepalive.
constexpr int kSilent = 0x8D;

struct FreeProperties {
    void operator()(mosquitto_property* it) const { mosquitto_property_free_all(&it); }
};
using Properties = std::unique_ptr<mosquitto_property, FreeProperties>;

Properties connect_properties(const MqttStep& step) {
    mosquitto_property* properties = nullptr;
    if (!step.clean_session) {
        mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL, kSessionKeptS);
    }
    return Properties(properties);
}

std::string words(int code) {
    if (code == MOSQ_ERR_KEEPALIVE) {
        return "the server did not answer a ping";  // libmosquitto 2.0.11 has no text for it
    }
    if (code == MOSQ_ERR_ERRNO || code == MOSQ_ERR_NOMEM) {
        return kernel_words(code == MOSQ_ERR_NOMEM ? ENOMEM : errno);
    }
    return mosquitto_strerror(code);
}

}  // namespace

bool rejects(int code) {
    return code >= kRefused;
}

const char* reason_word(int code) {
    switch (code) {
        case MQTT_RC_NOT_AUTHORIZED:
            return reason::kNotAuthorized;
        case MQTT_RC_TOPIC_NAME_INVALID:
            return reason::kNoDestination;
        case MQTT_RC_PACKET_TOO_LARGE:
            return reason::kTooLarge;
        case MQTT_RC_QUOTA_EXCEEDED:
            return reason::kQuota;
        default:
            return reason::kOther;
    }
}

MqttConnection::MqttConnection(const std::string& name, const MqttStep& step, Handlers handlers,
                               std::int64_t answer_within_ns)
    : handlers_(std::move(handlers)),
      server_("the MQTT server at " + step.host + ":" + std::to_string(step.port)),
      has_tls_(step.tls.has_value()),
      answer_within_ns_(answer_within_ns),
      keepalive_ns_(step.keepalive * kSecondNs),
      unused_(step.topic + "/keep-alive") {
    mosq_.reset(mosquitto_new(name.c_str(), step.clean_session, this));
    mosquitto* mosq = mosq_.get();
    if (mosq == nullptr) {
        throw TransportError("cannot make an MQTT client: " + words(MOSQ_ERR_ERRNO));
    }
    const bool is_5 = step.protocol == "5";
    mosquitto_int_option(mosq, MOSQ_OPT_PROTOCOL_VERSION, is_5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311);
    mosquitto_int_option(mosq, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_int_option(mosq, MOSQ_OPT_SEND_MAXIMUM, static_cast<int>(step.max_inflight));
    // If a server sends as many messages as its limit allows, libmosquitto 2.0.11 counts too many at QoS 2,
    // and ends the connection. So it gets no limit, and the server keeps to its own.
    mosquitto_int_option(mosq, MOSQ_OPT_RECEIVE_MAXIMUM, kNoLimit);
    mosquitto_connect_callback_set(
        mosq, [](mosquitto*, void* self, int code) { static_cast<MqttConnection*>(self)->accepted_ = code; });
    mosquitto_disconnect_v5_callback_set(
        mosq, [](mosquitto*, void* self, int code, const mosquitto_property*) {
            // A code of MQTT 5 is the server's.
            static_cast<MqttConnection*>(self)->lose(
                rejects(code) ? mosquitto_reason_string(code) : words(code), code);
        });
    mosquitto_subscribe_callback_set(
        mosq, [](mosquitto*, void* self, int message_id, int count, const int* codes) {
            static_cast<MqttConnection*>(self)->granted_ = {message_id, {codes, codes + count}};
        });
    mosquitto_unsubscribe_callback_set(mosq, [](mosquitto*, void* self, int message_id) {
        int& asked = static_cast<MqttConnection*>(self)->asked_;
        asked = asked == message_id ? -1 : asked;
    });
    mosquitto_message_callback_set(mosq, [](mosquitto*, void* self, const mosquitto_message* message) {
        auto& it = *static_cast<MqttConnection*>(self);
        it.received_ = true;
        if (it.handlers_.message) {
            it.handlers_.message(message->payload, static_cast<std::size_t>(message->payloadlen));
        }
    });
    mosquitto_publish_v5_callback_set(
        mosq, [](mosquitto*, void* self, int message_id, int code, const mosquitto_property*) {
            const Handlers& handlers = static_cast<MqttConnection*>(self)->handlers_;
            if (handlers.answer) {
                handlers.answer(message_id, code);
            }
        });
    try {
        connect(step);
    } catch (const TransportError&) {
        let_go();
        throw;
    }
}

MqttConnection::~MqttConnection() {
    if (lost_.empty()) {
        mosquitto_disconnect(mosq_.get());
        write();
    }
    let_go();
}

// Closes the placeholder of a lost connection's socket.
void MqttConnection::let_go() {
    if (!lost_.empty() && fd_ >= 0) {
        close(fd_);
        fd_ = -1;
    }
}

void MqttConnection::connect(const MqttStep& step) {
    const Properties properties = step.protocol == "5" ? connect_properties(step) : nullptr;
    const MosquittoAccess access(mosq_.get(), step);
    const std::int64_t began_ns = monotonic_ns();
    const int code = dial(step, properties.get());
    const std::int64_t opened_ns = monotonic_ns();
    if (code != MOSQ_ERR_SUCCESS) {
        // EPROTO: the server ended the handshake.
        const bool at_tls = code == MOSQ_ERR_TLS || (code == MOSQ_ERR_ERRNO && errno == EPROTO);
        throw TransportError(failure(at_tls ? "TLS" : "network", words(code)));
    }
    fd_ = mosquitto_socket(mosq_.get());
    await([this] { return accepted_ >= 0; }, "to the connection");
    if (accepted_ != 0) {
        const std::string why =
            step.protocol == "5" ? mosquitto_reason_string(accepted_) : mosquitto_connack_string(accepted_);
        throw TransportError(rejects_login(step, accepted_) ? failure("login", why)
                                                            : server_ + " rejects this client: " + why);
    }
    phases_ = {.connected_ns = monotonic_ns(), .subscribed = true};
    if (!has_tls_) {
        // With TLS the library's call also begins the handshake, and its end is not visible.
        phases_.tcp_us = (opened_ns - began_ns) / 1000;
        phases_.login_us = (phases_.connected_ns - opened_ns) / 1000;
    }
}

// Several threads may connect at once, but libmosquitto prepares OpenSSL without a lock, in its first connect
// with TLS.
int MqttConnection::dial(const MqttStep& step, const mosquitto_property* properties) {
    const auto connect = [&] {
        return mosquitto_connect_bind_v5(mosq_.get(), step.host.c_str(), static_cast<int>(step.port),
                                         static_cast<int>(step.keepalive), nullptr, properties);
    };
    std::optional<int> code;
    if (has_tls_) {
        static std::once_flag first;
        std::call_once(first, [&] { code = connect(); });
    }
    return code ? *code : connect();
}

void MqttConnection::subscribe(const std::vector<std::string>& filters, std::uint32_t qos) {
    std::vector<char*> pointers;
    for (const std::string& filter : filters) {
        pointers.push_back(const_cast<char*>(filter.c_str()));  // the library does not write to the filters
    }
    if (pointers.empty()) {
        return;
    }
    int id = 0;
    const int code = mosquitto_subscribe_multiple(mosq_.get(), &id, static_cast<int>(pointers.size()),
                                                  pointers.data(), static_cast<int>(qos), 0, nullptr);
    if (code != MOSQ_ERR_SUCCESS) {
        throw TransportError("cannot subscribe at " + server_ + ": " + words(code));
    }
    await([&] { return granted_.message_id == id; }, "to a subscription");
    if (const auto refused =
            std::ranges::find_if(granted_.codes, [](int granted) { return granted >= kRefused; });
        refused != granted_.codes.end()) {
        throw TransportError(server_ + " rejects a subscription: " + mosquitto_reason_string(*refused));
    }
}

int MqttConnection::publish(const std::string& topic, const void* payload, std::size_t size,
                            std::uint32_t qos, bool retain) {
    int id = -1;
    const int code = mosquitto_publish(mosq_.get(), &id, topic.c_str(), static_cast<int>(size), payload,
                                       static_cast<int>(qos), retain);
    if (code == MOSQ_ERR_OVERSIZE_PACKET) {
        return kTooLarge;
    }
    judge(code);
    if (!unsent()) {
        alive_ = true;
    }
    return code == MOSQ_ERR_SUCCESS && lost_.empty() ? id : -1;
}

// By ending a subscription that a publisher does not have: libmosquitto sends no ping on request.
void MqttConnection::ask(const std::string& topic) {
    judge(mosquitto_unsubscribe(mosq_.get(), &asked_, topic.c_str()));
}

void MqttConnection::read_all() {
    constexpr std::uint64_t kPacketsApart = 64;
    std::uint64_t packets = 0;
    do {
        if (packets++ % kPacketsApart == 0) {
            keep_alive();
        }
    } while (read());
}

bool MqttConnection::read() {
    // Messages often follow each other: after one, reading finds out whether there is another.
    const bool more = lost_.empty() && (std::exchange(received_, false) || readable());
    // TLS may have decrypted data that the socket no longer has: the library stops if it cannot write an
    // answer.
    if (more || (has_tls_ && lost_.empty())) {
        alive_ = alive_ || more;
        judge(mosquitto_loop_read(mosq_.get(), 1));
    }
    return more && lost_.empty();
}

void MqttConnection::write() {
    if (lost_.empty() && unsent()) {
        judge(mosquitto_loop_write(mosq_.get(), 1));
    }
}

void MqttConnection::wait(int timeout_ms) const {
    pollfd waiting{fd_, static_cast<short>(POLLIN | (unsent() ? POLLOUT : 0)), 0};
    poll(&waiting, lost_.empty() ? 1 : 0, timeout_ms);  // the placeholder is always readable
}

// mosquitto_loop_read does not report whether data is left. An end of the stream counts: it has to be read.
bool MqttConnection::readable() {
    char byte = 0;
    const ssize_t count = recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (count == 0 && has_tls_ && accepted_ < 0) {
        lose("the server ended the handshake");  // the library would continue it forever
        return false;
    }
    return count >= 0 || errno != EAGAIN;
}

void MqttConnection::await(const std::function<bool()>& condition, const char* what) {
    const std::int64_t deadline_ns = monotonic_ns() + answer_within_ns_;
    while (!condition()) {
        if (!lost_.empty()) {
            throw TransportError(failure(has_tls_ && accepted_ < 0 ? "TLS" : "network", lost_));
        }
        if (monotonic_ns() > deadline_ns) {
            throw TransportError(failure("network", std::string("no answer ") + what));
        }
        write();
        keep_alive();
        // With TLS `read` may have found what arrived while it looked.
        if (!read() && lost_.empty() && !condition()) {
            wait(static_cast<int>((deadline_ns - monotonic_ns()) / kMillisecondNs) + 1);
        }
    }
}

// The layer at which the server failed, as Python clients name it (hydra/client/tls.py).
std::string MqttConnection::failure(const char* layer, const std::string& why) const {
    if (!local_limit_in(why).empty()) {
        return "no connection with " + server_ + ": this host: " + why;
    }
    return server_ + (layer == std::string_view("network") ? " does not answer: " : ": ") + layer + ": " +
           why;
}

void MqttConnection::keep_alive() {
    const std::int64_t now_ns = monotonic_ns();
    if (!lost_.empty() || now_ns < look_at_ns_ || accepted_ < 0) {
        return;
    }
    look_at_ns_ = now_ns + kLookEveryNs;
    note_silence(now_ns);
    const bool alive = std::exchange(alive_, false);
    if (keepalive_ns_ == 0 || (!alive && !readable())) {
        judge(mosquitto_loop_misc(mosq_.get()));
    } else if (now_ns - stirred_ns_ >= keepalive_ns_ / 2) {
        stirred_ns_ = now_ns;
        judge(mosquitto_unsubscribe(mosq_.get(), nullptr, unused_.c_str()));
    }
    if (lost_.empty()) {
        served_ns_ = now_ns;
    }
}

// A server waits for one and a half times the keepalive, and the library pings after one, if it can.
void MqttConnection::note_silence(std::int64_t now_ns) {
    if (keepalive_ns_ > 0 && now_ns - served_ns_ >= keepalive_ns_ * 3 / 2) {
        late_ns_ = now_ns;
    }
}

void MqttConnection::judge(int code) {
    if (code != MOSQ_ERR_SUCCESS && code != MOSQ_ERR_CONN_PENDING) {
        lose(words(code));
    }
}

void MqttConnection::lose(const std::string& why, int code) {
    if (!lost_.empty()) {
        return;
    }
    lost_reason_ =
        rejects(code) && reason_word(code) != reason::kOther ? reason_word(code) : reason::kConnectionLost;
    const std::int64_t now_ns = monotonic_ns();
    note_silence(now_ns);
    // A client reads the end of a connection some time after it could ping again.
    was_silent_ = code == kSilent || (late_ns_ != 0 && now_ns - late_ns_ < keepalive_ns_);
    lost_ = was_silent_ ? "this client was silent for longer than its keepalive: " : "";
    lost_ += why.empty() ? "no reason was given" : why;
    // The library may have closed the socket already; whatever has its number, a placeholder replaces it.
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd_ >= 0 && nothing >= 0 && nothing != fd_) {
        dup2(nothing, fd_);
        close(nothing);
    }
}

}  // namespace hydra
