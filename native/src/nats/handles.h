// libnats' objects with an owner, and its errors as exceptions.
#pragma once

#include <nats/nats.h>

#include <memory>
#include <string>

#include "common/transport.h"

namespace hydra {

template <auto destroy>
struct NatsDestroy {
    template <typename T>
    void operator()(T* it) const {
        destroy(it);
    }
};

using NatsOptionsHandle = std::unique_ptr<natsOptions, NatsDestroy<natsOptions_Destroy>>;
using NatsMessage = std::unique_ptr<natsMsg, NatsDestroy<natsMsg_Destroy>>;
using NatsSubscriptionHandle = std::unique_ptr<natsSubscription, NatsDestroy<natsSubscription_Destroy>>;
using JetStreamHandle = std::unique_ptr<jsCtx, NatsDestroy<jsCtx_Destroy>>;

// The library's text for its last error on this thread, or for the status.
// Whether a call failed because the connection was lost; the library then opens another one.
inline bool interrupted(natsStatus status) {
    return status == NATS_CONNECTION_DISCONNECTED || status == NATS_IO_ERROR;
}

inline std::string nats_words(natsStatus status) {
    natsStatus last = NATS_OK;
    const char* words = nats_GetLastError(&last);
    const bool has_words = last == status && words != nullptr && *words != '\0';
    return has_words ? words : natsStatus_GetText(status);
}

inline void nats_check(natsStatus status, const std::string& what) {
    if (status != NATS_OK) {
        throw TransportError(what + ": " + nats_words(status));
    }
}

}  // namespace hydra
