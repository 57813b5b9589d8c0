// What a client needs of its system: the two interfaces that every transport implements; system.h opens them.
//
// A transport owns one data connection. It is made after the fork, in the client's own process, and is used
// by one thread. Sequences, times and ledgers are the business of the publisher and subscriber loops.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/batch.h"
#include "common/clock.h"
#include "common/header.h"
#include "common/messages/from_controller.h"
#include "common/messages/reports.h"
#include "common/payload.h"
#include "common/waiter.h"

namespace hydra {

// What cannot be done, as a text for the user. From `configure` it becomes an `error` of that epoch and the
// client goes on. From anywhere else it is fatal: the client says so and exits; of a packed process, only the
// client's step ends, with an `error` of its epoch.
struct TransportError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Consecutive messages to be sent: message i has sequence first_sequence + i and due (or send) time
// times_ns[i]. Each has a room in the payload's block, with its size, for the header to be written into.
struct Chunk {
    std::uint32_t epoch;
    Id publisher;
    std::uint64_t first_sequence;
    std::span<const std::uint64_t> times_ns;
    PayloadBlock& payload;

    [[nodiscard]] std::size_t count() const { return times_ns.size(); }
    [[nodiscard]] Header header(std::size_t i) const {
        return {epoch, publisher, first_sequence + i, times_ns[i]};
    }
    [[nodiscard]] PayloadBlock::Rooms rooms(std::size_t from = 0) const {
        return payload.from(first_sequence + from);
    }
};

// What became of the messages sent since the last `configure`. last_ack_ns is on CLOCK_MONOTONIC (0: none
// yet).
struct Delivery {
    std::uint64_t acknowledged = 0;
    std::uint64_t failed = 0;
    std::int64_t last_ack_ns = 0;
    std::vector<Range> unacknowledged;  // failed and pending; any number, the loop bounds it
    HistogramCounts ack_latency;        // from the hand-over to the library to the acknowledgement; or none
};

class PublisherTransport {
  public:
    virtual ~PublisherTransport() = default;

    // Takes the settings of the next step, rebuilding the connection only where the library demands it.
    // `command.system` is the system's own: see read_system in system_object.h.
    // Returns the endpoint that subscribers connect to, "" where there is none. Forgets the deliveries of the
    // last step.
    virtual std::string configure(const Configure& command) = 0;

    // About how long the block of payloads is to be: as long as what is compressed together. Where nothing
    // is, it need not be longer than what stays in the cache.
    [[nodiscard]] virtual std::uint64_t block_bytes() const { return 64 * 1024; }

    // What a message of this size takes of a connection, its frame included; none where its size does not
    // tell.
    [[nodiscard]] virtual std::optional<std::uint64_t> framed_bytes(std::uint64_t message_size) const {
        static_cast<void>(message_size);
        return std::nullopt;
    }

    // Sends one probe or end marker, best effort; they are not part of `delivery`.
    virtual void probe(const Header& header) = 0;

    // Whether an end marker tells a subscriber something: it does where a connection keeps the order and
    // nothing else says where the data ends.
    [[nodiscard]] virtual bool marks_end() const { return false; }

    // Hands the messages to the library in order, without waiting long (at most some 10 ms). Returns how many
    // it accepted, from the front: fewer than all means a full queue, and the loop offers the rest again.
    virtual std::size_t send(const Chunk& chunk) = 0;

    // Lets the library deliver acknowledgements; returns at once. Called before every chunk, while waiting,
    // when wake_fd has become readable,
    // and every few seconds between two steps.
    virtual void poll() {}

    // Watched edge-triggered from the beginning on, so that an acknowledgement is seen when it comes. -1:
    // none.
    [[nodiscard]] virtual int wake_fd() const { return -1; }

    // Waits at most timeout_s for outstanding answers, probes included; whether none is left.
    virtual bool flush(double timeout_s) {
        static_cast<void>(timeout_s);
        return true;
    }

    // None where the system acknowledges nothing.
    virtual std::optional<Delivery> delivery() { return std::nullopt; }

    // What only this system's publishers report of a step.
    [[nodiscard]] virtual SystemObject report_system() const { return {}; }

    // Throws the connection away with what it still holds; the next `configure` makes another.
    virtual void close() = 0;
};

class SubscriberTransport {
  public:
    virtual ~SubscriberTransport() = default;

    // Takes the settings, connects to the publishers or seeks to the start offsets.
    virtual void configure(const Configure& command) = 0;

    // Waits until what `configure` began is settled, such as the joining of a group; called when all clients
    // of the process have been configured, which may need each other for it. Errors as there.
    virtual void settle() {}

    // Appends what is there now to the batch, until it is full; never waits. The caller takes one reading of
    // the clock for all of it afterwards. Returns whether there may be more: false promises that wake_fd
    // becomes readable anew (an edge) when there is.
    virtual bool receive(Batch& batch) = 0;

    // Watched edge-triggered; may change with `configure` and `reconnect`. -1: none.
    [[nodiscard]] virtual int wake_fd() const { return -1; }

    // Has all that something may arrive at watched under this token, until `unwatch`; for transports that
    // have several descriptors, or others from time to time.
    virtual void watch(Waiter& waiter, std::uint64_t token) {
        static_cast<void>(waiter);
        static_cast<void>(token);
    }
    virtual void unwatch() {}

    // At one of these descriptors nothing follows what is there: it was closed.
    virtual void ended() {}

    // Something has arrived between two steps, when `receive` is not called.
    virtual void arrived_between_steps() {}

    // Does what keeps the connection alive while nothing arrives, and returns when it is to be called again
    // (CLOCK_MONOTONIC; kNeverNs: not). Between two steps `receive` is not called, so that it may have to
    // take what has come. TransportError: it cannot be kept alive.
    virtual std::int64_t tend(std::int64_t now_ns, bool between_steps) {
        static_cast<void>(now_ns);
        static_cast<void>(between_steps);
        return kNeverNs;
    }

    // When it is to be called, where that may have become earlier than it said.
    [[nodiscard]] virtual std::int64_t tend_at_ns() const { return kNeverNs; }

    // Closes the connection and opens a new one with the same settings (Kafka: at the position it had).
    virtual void reconnect() = 0;

    // Closes the connection; `reconnect` or `configure` opens another. Not watched then, and nothing is
    // taken.
    virtual void leave() = 0;

    // Messages known to be waiting; 0 where nobody can know. `system` is that of `finish`; asked often.
    // TransportError: it is not what this system says there.
    virtual std::uint64_t undrained(const SystemObject& system) {
        static_cast<void>(system);
        return 0;
    }

    // What only this system's subscribers report of a step.
    [[nodiscard]] virtual SystemObject report_system() const { return {}; }
};

}  // namespace hydra
