#include "nats/control_messages.h"

#include "common/system_fields.h"

namespace hydra {

NatsStep nats_step(const Configure& command) {
    NatsStep step = read_system<NatsStep>(command.system);
    if (step.servers.empty() || step.subject.empty()) {
        throw TransportError("configure lacks a server or the subject of NATS");
    }
    return step;
}

}  // namespace hydra
