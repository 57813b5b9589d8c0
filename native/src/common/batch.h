// A batch that a subscriber reads: the headers and sizes of the messages that were there, as runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "common/header.h"

namespace hydra {

// Most messages that are read before the control channel is read again.
inline constexpr std::size_t kBatchLimit = 2000;

// Consecutive messages of a publisher that have one epoch, time and size.
struct Run {
    Header first;
    std::uint32_t count;
    std::uint32_t size;  // of each message, in bytes

    [[nodiscard]] std::uint64_t last_sequence() const { return first.sequence + count - 1; }
    [[nodiscard]] std::uint64_t bytes() const { return std::uint64_t{count} * size; }
    [[nodiscard]] bool continued_by(const Header& next) const {
        return next.sequence == first.sequence + count && next.publisher == first.publisher &&
               next.epoch == first.epoch;
    }
    bool operator==(const Run&) const = default;
};

// A transport fills it and the ledger reads it; all clients of a process share one. At rate max the messages
// of a chunk carry one time, so hundreds of messages are a few runs: a process that shares a core with
// hundreds of others finds little of its memory in the cache. Only the pages that are needed are touched, so
// that thousands of idle processes stay small.
class Batch {
  public:
    Batch() : runs_(new Run[kBatchLimit]) {}

    // Empties the batch, which then accepts at most `limit` messages.
    void reset(std::size_t limit) {
        limit_ = limit < kBatchLimit ? limit : kBatchLimit;
        taken_ = count_ = 0;
        next_size_ = SIZE_MAX;
    }

    [[nodiscard]] bool full() const { return taken_ == limit_; }
    [[nodiscard]] std::size_t room() const { return limit_ - taken_; }
    // Adds a message, of which only the header is read. A message shorter than a header is ignored, but
    // counts against the limit, so a flood of such messages cannot keep the loop from the control
    // channel.
    void add(const void* message, std::size_t message_size) {
        ++taken_;
        if (message_size == next_size_ && std::memcmp(message, &next_, kHeaderBytes) == 0) {
            ++next_.sequence;
            ++runs_[count_ - 1].count;
        } else if (message_size >= kHeaderBytes) {
            const Header first = read_header(message);
            runs_[count_++] = {first, 1, static_cast<std::uint32_t>(message_size)};
            next_ = {first.epoch, first.publisher, first.sequence + 1, first.time_ns};
            next_size_ = message_size;
        }
    }

    // Adds the messages of a run, for which there is room; short ones are ignored, too.
    void add(const Run& run) {
        taken_ += run.count;
        if (run.size >= kHeaderBytes) {
            runs_[count_++] = run;
            next_size_ = SIZE_MAX;
        }
    }

    [[nodiscard]] std::span<const Run> runs() const { return {runs_.get(), count_}; }

  private:
    std::unique_ptr<Run[]> runs_;
    std::size_t limit_ = kBatchLimit;
    std::size_t taken_ = 0;
    std::size_t count_ = 0;
    // Header and size of the message that would continue the last run; no message has the size without a run.
    Header next_{};
    std::size_t next_size_ = SIZE_MAX;
};

}  // namespace hydra
