#include "mqtt/access.h"

#include <mqtt_protocol.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "common/transport.h"

namespace hydra {
namespace {

// libmosquitto demands a file or a folder of CAs beside the machine's own.
constexpr const char* kFolderOfCas = "/etc/ssl/certs";
// The codes of MQTT 3.1.1; those of MQTT 5 are MQTT_RC_….
constexpr int kBadPassword = 4;
constexpr int kNotAuthorized = 5;

}  // namespace

bool mosquitto_has_tls() {
    mosquitto_lib_init();
    const std::unique_ptr<mosquitto, void (*)(mosquitto*)> made(mosquitto_new(nullptr, true, nullptr),
                                                                mosquitto_destroy);
    return mosquitto_tls_insecure_set(made.get(), false) == MOSQ_ERR_SUCCESS;
}

MemoryFile::MemoryFile(const std::string& text) {
    if (text.empty()) {
        return;
    }
    fd_ = memfd_create("hydra-tls", MFD_CLOEXEC);
    if (fd_ < 0 || write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        const int error = errno;
        close(fd_);
        throw std::system_error(error, std::generic_category(), "a file in memory");
    }
    path_ = "/proc/self/fd/" + std::to_string(fd_);
}

MemoryFile::~MemoryFile() {
    if (fd_ >= 0) {
        close(fd_);
    }
}

MosquittoAccess::MosquittoAccess(mosquitto* mosq, const MqttStep& step)
    : ca_(step.tls ? step.tls->ca : ""),
      certificate_(step.tls ? step.tls->certificate : ""),
      key_(step.tls ? step.tls->key : "") {
    if (!step.username.empty()) {
        mosquitto_username_pw_set(mosq, step.username.c_str(),
                                  step.password.empty() ? nullptr : step.password.c_str());
    }
    if (!step.tls) {
        return;
    }
    const bool own = ca_.path() != nullptr;
    mosquitto_int_option(mosq, MOSQ_OPT_TLS_USE_OS_CERTS, own ? 0 : 1);
    const int code = mosquitto_tls_set(mosq, ca_.path(), own ? nullptr : kFolderOfCas, certificate_.path(),
                                       key_.path(), nullptr);
    if (code != MOSQ_ERR_SUCCESS) {
        throw TransportError(std::string("TLS: libmosquitto: ") + mosquitto_strerror(code));
    }
}

bool rejects_login(const MqttStep& step, int code) {
    if (step.protocol == "5") {
        return code == MQTT_RC_BAD_USERNAME_OR_PASSWORD || code == MQTT_RC_NOT_AUTHORIZED ||
               code == MQTT_RC_BAD_AUTHENTICATION_METHOD;
    }
    return code == kBadPassword || code == kNotAuthorized;
}

}  // namespace hydra
