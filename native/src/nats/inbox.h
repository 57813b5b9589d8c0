// Messages on their way from libnats' thread to the client's thread, and the descriptor that wakes the
// client.
//
// It holds at most one batch: messages that the client does not take wait in the library, whose pending
// limits decide when a consumer is slow. If one thread of libnats serves several clients, it must not wait
// for one of them: then the inbox has the limit, and drops the messages beyond it.
#pragma once

#include <nats/nats.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "common/batch.h"

namespace hydra {

// The places of a message in its stream and among the deliveries of its consumer, from 1; 0: it is not from a
// stream.
struct StreamSequences {
    std::uint64_t stream = 0;
    std::uint64_t consumer = 0;

    // The places of the message that is this many messages later.
    [[nodiscard]] StreamSequences after(std::uint64_t count) const {
        return stream == 0 ? *this : StreamSequences{stream + count, consumer + count};
    }
    bool operator==(const StreamSequences&) const = default;
};

// From a message's reply subject.
StreamSequences stream_sequences(const char* reply);

class Inbox {
  public:
    // `most`: the messages beyond which it drops; 0: it drops none.
    explicit Inbox(std::size_t most = 0);
    ~Inbox();
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;

    // Called by libnats' thread; waits while the inbox is full, or drops the message. `more`: another message
    // follows for certain, so this one need not wake the client: a wake-up costs as much as several messages.
    // False: the inbox is closed.
    bool put(const natsMsg* message, bool more = false);
    // Called by libnats' thread with an error, which the client's next `take` throws.
    void fail(const std::string& what);

    // Moves messages to the batch, until it is full. Returns whether there may be more; false promises that
    // the descriptor becomes readable when there is. TransportError: the error of `fail`.
    bool take(Batch& batch);

    // Ends a wait in `put`, and all later ones.
    void close();
    [[nodiscard]] bool closed() const;

    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

    // Watched edge-triggered, so it is never read.
    [[nodiscard]] int fd() const { return fd_; }
    // The highest stream sequence taken; 0 if there was none.
    [[nodiscard]] std::uint64_t position() const { return position_; }
    // The highest consumer sequence taken; 0 if there was none.
    [[nodiscard]] std::uint64_t delivered() const { return delivered_; }

  private:
    // Messages that follow one another, also in their stream: thousands take little of the cache.
    struct Stretch {
        Run run;
        StreamSequences first;
    };

    void add(const Run& message, const StreamSequences& sequences);
    void wake() const;

    int fd_;
    std::size_t most_;
    std::size_t wake_at_;  // the messages that wake the client although more follow
    std::atomic<std::uint64_t> dropped_ = 0;
    mutable std::mutex mutex_;
    std::condition_variable room_;
    std::vector<Stretch> put_;
    std::size_t waiting_ = 0;  // the messages of `put_`
    bool woken_ = false;       // for these messages
    bool closed_ = false;
    std::string failure_;
    // Used only by the client's thread.
    std::vector<Stretch> taking_;
    std::size_t taken_ = 0;  // stretches
    std::uint64_t position_ = 0;
    std::uint64_t delivered_ = 0;
};

}  // namespace hydra
