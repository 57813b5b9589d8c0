#include "nats/access.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/local_limits.h"

namespace hydra {
namespace {

natsStatus read_jwt(char** jwt, char**, void* closure) {
    *jwt = strdup(static_cast<const NatsLogin*>(closure)->jwt.c_str());
    return *jwt == nullptr ? NATS_NO_MEMORY : NATS_OK;
}

natsStatus sign(char**, unsigned char** signature, int* length, const char* nonce, void* closure) {
    return nats_Sign(static_cast<const NatsLogin*>(closure)->seed.c_str(), nonce, signature, length);
}

// libnats puts these texts between the quotes of JSON as they are.
std::string escaped(const std::string& text) {
    const std::string quoted = nlohmann::json(text).dump();
    return quoted.substr(1, quoted.size() - 2);
}

void set_login(natsOptions* options, const NatsLogin& login) {
    // libnats only reads what it gets as a closure.
    auto* closure = const_cast<NatsLogin*>(&login);
    if (!login.jwt.empty()) {
        nats_check(natsOptions_SetUserCredentialsCallbacks(options, read_jwt, closure, sign, closure),
                   "login: credentials");
    } else if (!login.seed.empty()) {
        nats_check(natsOptions_SetNKey(options, login.nkey.c_str(), sign, closure), "login: NKEY");
    } else if (!login.token.empty()) {
        nats_check(natsOptions_SetToken(options, escaped(login.token).c_str()), "login: token");
    } else {
        nats_check(natsOptions_SetUserInfo(options, escaped(login.username).c_str(),
                                           escaped(login.password).c_str()),
                   "login: user");
    }
}

void set_tls(natsOptions* options, const ClientTls& tls) {
    nats_check(natsOptions_SetSecure(options, true), "TLS");
    if (!tls.ca.empty()) {
        nats_check(natsOptions_SetCATrustedCertificates(options, tls.ca.c_str()), "TLS: CAs");
    }
    if (!tls.certificate.empty()) {
        nats_check(natsOptions_SetCertificatesChain(options, tls.certificate.c_str(), tls.key.c_str()),
                   "TLS: client certificate");
    }
}

NatsOptionsHandle made_options() {
    natsOptions* made = nullptr;
    nats_check(natsOptions_Create(&made), "libnats");
    return NatsOptionsHandle(made);
}

// The options of connections with this TLS and login.
struct SharedOptions {
    std::mutex mutex;
    std::optional<ClientTls> tls;
    std::optional<NatsLogin> login;
    NatsOptionsHandle options;
};

// It exists as long as the process: threads may still connect at its end.
SharedOptions& shared_options() {
    static auto* const made = new SharedOptions;
    return *made;
}

}  // namespace

bool nats_has_tls() {
    return natsOptions_SetSecure(made_options().get(), true) == NATS_OK;
}

NatsAccess::NatsAccess(const NatsStep& step) {
    if (step.tls) {
        SharedOptions& shared = shared_options();
        turn_ = std::unique_lock(shared.mutex);
        if (shared.options == nullptr || shared.tls != step.tls || shared.login != step.login) {
            shared.options = nullptr;
            NatsOptionsHandle options = made_options();
            set_tls(options.get(), *step.tls);
            shared.tls = step.tls;
            shared.login = step.login;
            shared.options = std::move(options);
        }
        options_ = shared.options.get();
    } else {
        own_ = made_options();
        options_ = own_.get();
    }
    if (step.login) {
        set_login(options_, *step.login);
    }
}

std::string nats_failure(natsStatus status, int error, bool tls) {
    if (status == NATS_NO_MEMORY) {
        error = ENOMEM;
    }
    if (!local_limit(error).empty()) {
        return ": this host: " + kernel_words(error);
    }
    const std::string words = nats_words(status);
    // With TLS 1.3 a server rejects a client certificate after the handshake: it answers nothing any more.
    const bool ended = tls && (status == NATS_PROTOCOL_ERROR || words.find("SSL") != std::string::npos);
    if (ended || status == NATS_SSL_ERROR || status == NATS_SECURE_CONNECTION_REQUIRED ||
        status == NATS_SECURE_CONNECTION_WANTED) {
        return ": TLS: " + words;
    }
    return (status == NATS_CONNECTION_AUTH_FAILED ? ": login: " : " does not answer: network: ") + words;
}

}  // namespace hydra
