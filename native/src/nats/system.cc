#include "nats/system.h"

#include <malloc.h>
#include <nats/nats.h>

#include "nats/access.h"
#include "nats/publisher.h"
#include "nats/subscriber.h"

namespace hydra {
namespace {

constexpr int kKeptBytes = 32 << 20;

}  // namespace

std::map<std::string, std::string> NatsSystem::versions() const {
    return {{"libnats", nats_GetVersion()}};
}

bool NatsSystem::has_tls() const {
    return nats_has_tls();
}

std::unique_ptr<PublisherTransport> NatsSystem::open_publisher(zmq::context_t&) const {
    return std::make_unique<NatsPublisher>();
}

std::unique_ptr<SubscriberTransport> NatsSystem::open_subscriber(zmq::context_t&) const {
    // Libnats allocates each message: if the heap gave back what a batch of them took, the kernel would clear
    // the same pages again 200,000 times a second, for a tenth of the CPU of 30 subscribers at full rate.
    // The process has one arena. Both limits, because with the first one alone glibc no longer raises the
    // second one by itself, and would map and unmap the memory of each large message.
    mallopt(M_TRIM_THRESHOLD, kKeptBytes);
    mallopt(M_MMAP_THRESHOLD, kKeptBytes);
    return std::make_unique<NatsSubscriber>();
}

}  // namespace hydra
