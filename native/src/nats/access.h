// How a client is let in by the servers: login and TLS, as options of libnats.
#pragma once

#include <nats/nats.h>

#include <mutex>
#include <string>

#include "nats/control_messages.h"
#include "nats/handles.h"

namespace hydra {

// Whether libnats was built with TLS.
bool nats_has_tls();

// The options of one connection, with its login and TLS. With TLS the connections of a process share one
// object, and with it OpenSSL's context: to make one takes 40 ms and 0.8 MB if it reads the machine's CAs,
// which libnats trusts, too, unless SSL_CERT_FILE and SSL_CERT_DIR lead nowhere. So they connect in turns;
// libnats copies the options when it connects.
class NatsAccess {
  public:
    // The step must exist as long as the connection.
    // TransportError: a text is no certificate or key, or libnats has no TLS.
    explicit NatsAccess(const NatsStep& step);

    [[nodiscard]] natsOptions* options() const { return options_; }

  private:
    std::unique_lock<std::mutex> turn_;  // of a connection with TLS
    NatsOptionsHandle own_;              // of a connection without TLS
    natsOptions* options_;
};

// Why libnats could not connect: at TLS, at the login, or at the network.
std::string nats_failure(natsStatus status, int error, bool tls);

}  // namespace hydra
