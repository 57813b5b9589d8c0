// How a client is let in by the servers: login and TLS, as options of libnats.
#pragma once

#include <nats/nats.h>

#include <string>

#include "nats/control_messages.h"

namespace hydra {

// Whether libnats was built with TLS.
bool nats_has_tls();

// Sets login and TLS, which must exist as long as the connection that is made with the options.
// TransportError: a text is no certificate or key, or libnats has no TLS.
void set_access(natsOptions* options, const NatsStep& step);

// Why libnats could not connect: at TLS, at the login, or at the network.
std::string nats_failure(natsStatus status, bool tls);

}  // namespace hydra
