// What a subscriber reads at a time: the headers of the messages that were there, and their sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/header.h"

namespace hydra {

// Most messages taken before the control channel is looked at again.
inline constexpr std::size_t kBatchLimit = 2000;

// Filled by a transport, read by the ledger; one for all clients of a process. Its pages are touched only as
// far as batches get long, so that thousands of idle processes stay small.
class Batch {
  public:
    Batch() : headers_(new Header[kBatchLimit]), sizes_(new std::uint32_t[kBatchLimit]) {}

    // Empties it; at most `limit` messages go in next.
    void reset(std::size_t limit) {
        limit_ = limit < kBatchLimit ? limit : kBatchLimit;
        taken_ = count_ = 0;
    }

    [[nodiscard]] bool full() const { return taken_ == limit_; }
    [[nodiscard]] std::size_t room() const { return limit_ - taken_; }

    // Where the header of the next message goes; `add` makes it part of the batch.
    [[nodiscard]] Header* next() { return headers_.get() + count_; }

    // The message whose header was written to next(). One that is shorter than a header is no message of
    // ours: it is ignored, but counts against the limit, so that a flood of them cannot hide the control
    // channel.
    void add(std::size_t message_size) {
        ++taken_;
        if (message_size >= kHeaderBytes) {
            sizes_[count_++] = static_cast<std::uint32_t>(message_size);
        }
    }

    // A message that lies somewhere else.
    void add(const void* message, std::size_t message_size) {
        if (message_size >= kHeaderBytes) {
            *next() = read_header(message);
        }
        add(message_size);
    }

    [[nodiscard]] std::span<const Header> headers() const { return {headers_.get(), count_}; }
    [[nodiscard]] std::span<const std::uint32_t> sizes() const { return {sizes_.get(), count_}; }

  private:
    std::unique_ptr<Header[]> headers_;
    std::unique_ptr<std::uint32_t[]> sizes_;
    std::size_t limit_ = kBatchLimit;
    std::size_t taken_ = 0;
    std::size_t count_ = 0;
};

}  // namespace hydra
