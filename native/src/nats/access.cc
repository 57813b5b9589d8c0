#include "nats/access.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "nats/handles.h"

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

}  // namespace

bool nats_has_tls() {
    natsOptions* made = nullptr;
    if (natsOptions_Create(&made) != NATS_OK) {
        return false;
    }
    const NatsOptionsHandle options(made);
    return natsOptions_SetSecure(made, true) == NATS_OK;
}

void set_access(natsOptions* options, const NatsStep& step) {
    if (step.login) {
        set_login(options, *step.login);
    }
    if (step.tls) {
        set_tls(options, *step.tls);
    }
}

std::string nats_failure(natsStatus status, bool tls) {
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
