// Messages on their way from libnats' thread to the client's, and the descriptor that wakes the client.
//
// It takes a batch ahead and no more: what the client does not take waits in the library, whose pending
// limits decide when a consumer is slow.
#pragma once

#include <nats/nats.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "common/batch.h"

namespace hydra {

class Inbox {
  public:
    Inbox();
    ~Inbox();
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;

    // From libnats' thread: waits while the inbox is full. False: nobody takes anything any more.
    bool put(const natsMsg* message);
    // What is wrong, from libnats' thread; the client finds it with `take`.
    void fail(const std::string& what);

    // What is there, until the batch is full. Whether there may be more; false promises that the descriptor
    // becomes readable anew. TransportError: what was said to `fail`.
    bool take(Batch& batch);

    // Lets go of whoever waits in `put`, for good.
    void close();
    [[nodiscard]] bool closed() const;

    // Watched for edges, so it is never read.
    [[nodiscard]] int fd() const { return fd_; }
    // The highest stream sequence taken; 0 if there was none.
    [[nodiscard]] std::uint64_t position() const { return position_; }

  private:
    struct Entry {
        Header header;
        std::uint32_t size;
        std::uint64_t stream_sequence;  // 0: not from a stream
    };

    void wake() const;

    int fd_;
    mutable std::mutex mutex_;
    std::condition_variable room_;
    std::vector<Entry> put_;
    bool closed_ = false;
    std::string failure_;
    // The client's own.
    std::vector<Entry> taking_;
    std::size_t taken_ = 0;
    std::uint64_t position_ = 0;
};

// Which message of the stream it is, from its reply subject; 0: it comes from no stream.
std::uint64_t stream_sequence(const char* reply);

}  // namespace hydra
