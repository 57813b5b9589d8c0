// How a client is let in by the server: login and TLS, as options of libmosquitto.
#pragma once

#include <mosquitto.h>

#include <string>

#include "mqtt/control_messages.h"

namespace hydra {

// Whether libmosquitto was built with TLS.
bool mosquitto_has_tls();

// A text as a file of this process alone: libmosquitto reads certificates from files.
class MemoryFile {
  public:
    explicit MemoryFile(const std::string& text);
    ~MemoryFile();
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    // Null if the text is empty.
    [[nodiscard]] const char* path() const { return path_.empty() ? nullptr : path_.c_str(); }

  private:
    int fd_ = -1;
    std::string path_;
};

// Sets login and TLS. It must exist until libmosquitto has begun to connect, which is when it reads the
// files.
class MosquittoAccess {
  public:
    // TransportError: libmosquitto has no TLS.
    MosquittoAccess(mosquitto* mosq, const MqttStep& step);

  private:
    MemoryFile ca_;
    MemoryFile certificate_;
    MemoryFile key_;
};

// Whether a CONNACK with this code rejects the login.
bool rejects_login(const MqttStep& step, int code);

}  // namespace hydra
