// The interfaces between a client and its system: every transport implements one of two; system.h opens them.
//
// A transport has one data connection. The connection is made after the fork, in the client's own process,
// and one thread uses it. The publisher and subscriber loops handle sequences, times and ledgers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/acceptance.h"
#include "common/batch.h"
#include "common/clock.h"
#include "common/header.h"
#include "common/messages/from_controller.h"
#include "common/messages/reports.h"
#include "common/payload.h"
#include "common/subscriber_connection.h"
#include "common/traffic.h"
#include "common/waiter.h"

namespace hydra {

// An error, with a text for the user. In `configure` it becomes an `error` of that epoch, and the client
// continues. Elsewhere it is fatal: the client sends it and exits. In a process with several clients, only
// the client's step ends, with an `error` of its epoch.
struct TransportError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Consecutive messages to be sent: message i has sequence first_sequence + i and due (or send) time
// times_ns[i]. Each has a space in the payload's block, with its size, where the header is written.
struct Chunk {
    std::uint32_t epoch;
    Id publisher;
    std::uint64_t first_sequence;
    std::span<const std::uint64_t> times_ns;
    PayloadBlock& payload;
    const PublisherTraffic* traffic = nullptr;  // null: one topic, no keys, and the sizes of the payloads

    [[nodiscard]] std::size_t count() const { return times_ns.size(); }
    [[nodiscard]] Header header(std::size_t i) const {
        return {epoch, publisher, first_sequence + i, times_ns[i]};
    }
    [[nodiscard]] PayloadBlock::Rooms rooms(std::size_t from = 0) const {
        return payload.from(first_sequence + from, traffic);
    }
    // The topic of message i.
    [[nodiscard]] std::uint32_t topic(std::size_t i) const {
        return traffic == nullptr ? 0 : traffic->topic(first_sequence + i);
    }
};

// The acknowledgements of the messages sent since the last `configure`. last_ack_ns is on CLOCK_MONOTONIC (0:
// none yet).
struct Delivery {
    std::uint64_t acknowledged = 0;
    std::uint64_t failed = 0;
    std::int64_t last_ack_ns = 0;
    std::vector<Range> unacknowledged;  // failed and pending; any number: the loop limits it
    HistogramCounts ack_latency;        // from hand-over to the library to acknowledgement; may be empty
};

class PublisherTransport {
  public:
    virtual ~PublisherTransport() = default;

    // Applies the settings of the next step, and makes a new connection only if the library requires it.
    // `command.system` is the system's own object: see read_system in system_fields.h. Returns the endpoint
    // to which subscribers connect, "" if there is none. Forgets the deliveries of the last step.
    virtual std::string configure(const Configure& command) = 0;

    // The approximate length of the block of payloads: as long as what is compressed together. Without
    // compression, it need not be longer than what stays in the cache.
    [[nodiscard]] virtual std::uint64_t block_bytes() const { return 64 * 1024; }

    // Bytes that a message of this size needs on the connection, with its frame; none if other things matter.
    [[nodiscard]] virtual std::optional<std::uint64_t> framed_bytes(std::uint64_t message_size) const {
        static_cast<void>(message_size);
        return std::nullopt;
    }

    // Sends one probe or end marker to each of the signalled topics (traffic.h), without a guarantee;
    // `delivery` does not count them.
    virtual void probe(const Header& header) = 0;

    // Whether an end marker informs a subscriber: it does if a connection keeps the order and nothing else
    // shows where the data ends.
    [[nodiscard]] virtual bool marks_end() const { return false; }

    // Hands the messages to the library in order, without waiting long (at most some 10 ms). Returns how many
    // it accepted, from the front: fewer than all means a full queue, and the loop offers the rest again.
    virtual std::size_t send(const Chunk& chunk) = 0;

    // Lets the library deliver acknowledgements; returns at once. Called before every chunk, while waiting,
    // when wake_fd has become readable, and every few seconds between two steps.
    virtual void poll() {}

    // Watched edge-triggered from the beginning, so an acknowledgement is noticed when it arrives. -1:
    // none.
    [[nodiscard]] virtual int wake_fd() const { return -1; }

    // Waits at most timeout_s for outstanding answers, also to probes; returns whether none is left.
    virtual bool flush(double timeout_s) {
        static_cast<void>(timeout_s);
        return true;
    }

    // None if the system has no acknowledgements.
    virtual std::optional<Delivery> delivery() { return std::nullopt; }

    // The number of acknowledged messages, a cheap form of `delivery`; none if the system has no
    // acknowledgements.
    [[nodiscard]] virtual std::optional<std::uint64_t> accepted() const { return std::nullopt; }

    // Why messages were rejected since `configure`.
    [[nodiscard]] virtual FirstReason refused() const { return {}; }

    // The losses of the connection since `configure`, if the library reveals them.
    [[nodiscard]] virtual ConnectionLosses losses() const { return {}; }

    // The system's own part of a publisher's report.
    [[nodiscard]] virtual SystemObject report_system() const { return {}; }

    // Closes the connection with the messages that it still holds; the next `configure` makes another.
    virtual void close() = 0;
};

class SubscriberTransport {
  public:
    virtual ~SubscriberTransport() = default;

    // The topics of the next step; called before `configure`. TransportError: this client has only one.
    virtual void choose(const TopicFilter& filter) {
        if (filter.numbered()) {
            throw TransportError(
                "this client cannot subscribe to several topics; take another implementation");
        }
    }

    // Applies the settings; connects to the publishers or seeks to the start offsets.
    virtual void configure(const Configure& command) = 0;

    // Waits until what `configure` began is complete, such as joining a consumer group. Called when all
    // clients of the process were configured, because they may need each other. Errors as in `configure`.
    virtual void settle() {}

    // Appends the messages that are there to the batch, until it is full; never waits. The caller reads the
    // clock once for all of them afterwards. Returns whether there may be more: false promises that wake_fd
    // becomes readable (an edge) when there is.
    virtual bool receive(Batch& batch) = 0;

    // Watched edge-triggered; may change with `configure` and `reconnect`. -1: none.
    [[nodiscard]] virtual int wake_fd() const { return -1; }

    // Has all descriptors with arrivals watched under this token, until `unwatch`; for transports that have
    // several descriptors, or different ones over time.
    virtual void watch(Waiter& waiter, std::uint64_t token) {
        static_cast<void>(waiter);
        static_cast<void>(token);
    }
    virtual void unwatch() {}

    // One of these descriptors was closed: nothing follows the data that is there.
    virtual void ended() {}

    // Data has arrived between two steps, when `receive` is not called.
    virtual void arrived_between_steps() {}

    // Keeps the connection alive while nothing arrives, and returns when it must be called again
    // (CLOCK_MONOTONIC; kNeverNs: not). Between two steps `receive` is not called, so it may have to read
    // what has arrived. TransportError: the connection cannot be kept alive.
    virtual std::int64_t tend(std::int64_t now_ns, bool between_steps) {
        static_cast<void>(now_ns);
        static_cast<void>(between_steps);
        return kNeverNs;
    }

    // When `tend` must be called, if that may be earlier than it returned.
    [[nodiscard]] virtual std::int64_t tend_at_ns() const { return kNeverNs; }

    // How many transports may `connect` at a time with these settings, each on a thread of its own while
    // nothing else uses it; 0: they connect on the thread of their process's loop.
    [[nodiscard]] virtual std::size_t connects_aside(const Configure& command) const {
        static_cast<void>(command);
        return 0;
    }

    // Opens a connection for these settings: one attempt, of a transport that has none. `limit_ns` is its
    // time limit, where the library has one. TransportError: it failed.
    virtual void connect(const Configure& command, std::int64_t limit_ns) {
        static_cast<void>(limit_ns);
        configure(command);
    }

    // Takes over what the report of the step has to contain of the transport that this one replaces.
    virtual void inherit(const SubscriberTransport& earlier) { static_cast<void>(earlier); }

    // What is known of how the connection was made.
    [[nodiscard]] virtual ConnectPhases phases() const { return {}; }

    // The limit of this host at which a library that connects in the background has failed since `configure`,
    // or "".
    [[nodiscard]] virtual std::string local_limit() const { return ""; }

    // Whether the connection was lost and the library does not open another.
    [[nodiscard]] virtual bool lost() const { return false; }

    // The disconnections since `configure` after which the library connects again (CLOCK_MONOTONIC).
    [[nodiscard]] virtual std::vector<Disconnection> disconnections() const { return {}; }

    // Closes the connection and opens a new one with the same settings (Kafka: at its last position).
    virtual void reconnect() = 0;

    // Closes the connection; `reconnect` or `configure` opens another. Until then it is not watched, and
    // nothing is read.
    virtual void leave() = 0;

    // Number of messages known to wait for this subscriber; 0 if the number is unknown. `system` is the
    // object in `finish`; called often. TransportError: the object is invalid for this system.
    virtual std::uint64_t undrained(const SystemObject& system) {
        static_cast<void>(system);
        return 0;
    }

    // The system's own part of a subscriber's report.
    [[nodiscard]] virtual SystemObject report_system() const { return {}; }
};

}  // namespace hydra
