// The payloads of a publisher's messages, prepared before the step begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/messages/from_controller.h"
#include "common/traffic.h"

namespace hydra {

// A block of consecutive messages with space for their headers: message n has payload n; after the last
// payload they repeat. The same seed gives the same bytes as in hydra/client/payload.py.
class PayloadBlock {
  public:
    // Makes a new block of about most_bytes if a setting has changed. TransportError: the file with the lines
    // cannot be read, or has no lines.
    void set(const Configure& command, std::uint64_t most_bytes);

    // The spaces of consecutive messages; valid until a new block is made.
    class Rooms {
      public:
        [[nodiscard]] std::span<char> next() {
            const std::uint64_t begin = *at_++;
            const std::uint64_t size = traffic_ == nullptr ? *at_ - begin : traffic_->size(sequence_++);
            const std::span<char> room(block_.bytes_.data() + begin, size);
            if (at_ == end_) {
                at_ = block_.begins_.data();
            }
            return room;
        }

      private:
        friend PayloadBlock;
        Rooms(PayloadBlock& block, std::uint64_t sequence, const PublisherTraffic* traffic)
            : block_(block),
              traffic_(traffic),
              sequence_(sequence),
              at_(block.begins_.data() + sequence % block.messages()),
              end_(block.begins_.data() + block.messages()) {}

        PayloadBlock& block_;
        const PublisherTraffic* traffic_;  // null: it has no sizes
        std::uint64_t sequence_;           // of the next message, with traffic
        const std::uint64_t* at_;
        const std::uint64_t* end_;
    };
    // If the traffic has sizes, a message has the beginning of its payload.
    [[nodiscard]] Rooms from(std::uint64_t sequence, const PublisherTraffic* traffic = nullptr) {
        return {*this, sequence, traffic != nullptr && traffic->has_sizes() ? traffic : nullptr};
    }

    // The number of different messages in the block.
    [[nodiscard]] std::uint64_t messages() const { return begins_.size() - 1; }
    // Whether only zeros follow the headers.
    [[nodiscard]] bool zeros() const { return settings_.payload == Payload::zeros; }

    // The bytes of the first messages of a step together; `of` returns the bytes of a message from its size.
    [[nodiscard]] std::uint64_t total_bytes(
        std::uint64_t messages,
        const std::function<std::uint64_t(std::uint64_t size)>& of = [](auto size) { return size; },
        const PublisherTraffic* traffic = nullptr) const;

  private:
    void prepare();
    void take_lines();
    void lay_out(std::uint64_t most_bytes, std::uint64_t most_messages);

    Settings settings_;
    std::uint64_t share_ = 0;
    std::uint64_t most_bytes_ = 0;          // 0: nothing is prepared yet
    std::vector<std::uint64_t> begins_{0};  // begin of each message, and end of the last one
    std::vector<char> bytes_;
};

}  // namespace hydra
