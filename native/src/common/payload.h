// What follows the headers of a publisher's messages, all of it prepared before the step begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/messages/from_controller.h"

namespace hydra {

// A block in which messages lie side by side, with room for their headers: message n has payload n, and
// behind the last one they begin anew. The bytes are the same from the same seed as in
// hydra/client/payload.py.
class PayloadBlock {
  public:
    // Makes the block anew where something has changed. It is about so many bytes long. TransportError: the
    // file with the lines cannot be read, or has none.
    void set(const Configure& command, std::uint64_t most_bytes);

    // The rooms of consecutive messages; valid as long as the block is not made anew.
    class Rooms {
      public:
        [[nodiscard]] std::span<char> next() {
            const std::uint64_t begin = *at_++;
            const std::span<char> room(block_.bytes_.data() + begin, *at_ - begin);
            if (at_ == end_) {
                at_ = block_.begins_.data();
            }
            return room;
        }

      private:
        friend PayloadBlock;
        Rooms(PayloadBlock& block, std::uint64_t sequence)
            : block_(block),
              at_(block.begins_.data() + sequence % block.messages()),
              end_(block.begins_.data() + block.messages()) {}

        PayloadBlock& block_;
        const std::uint64_t* at_;
        const std::uint64_t* end_;
    };
    [[nodiscard]] Rooms from(std::uint64_t sequence) { return {*this, sequence}; }

    // So many different rooms there are.
    [[nodiscard]] std::uint64_t messages() const { return begins_.size() - 1; }
    // Whether nothing but zeros follows the headers.
    [[nodiscard]] bool zeros() const { return settings_.payload == Payload::zeros; }

    // What the first messages take in all; `of` says what a message of some size does.
    [[nodiscard]] std::uint64_t total_bytes(
        std::uint64_t messages,
        const std::function<std::uint64_t(std::uint64_t size)>& of = [](auto size) { return size; }) const;

  private:
    void prepare();
    void take_lines();
    void lay_out(std::uint64_t most_bytes, std::uint64_t most_messages);

    Settings settings_;
    std::uint64_t share_ = 0;
    std::uint64_t most_bytes_ = 0;          // 0: nothing is prepared yet
    std::vector<std::uint64_t> begins_{0};  // of each message, and the end of the last one
    std::vector<char> bytes_;
};

}  // namespace hydra
