// What follows the header of a data message.
#pragma once

#include <cstdint>
#include <vector>

#include "common/messages/from_controller.h"

namespace hydra {

// A block of zeros, or of random bytes that is made once: messages lie in it side by side, one behind the
// other, and it begins anew at its end. So nothing is made for a message, and random ones cannot be
// compressed as long as a batch is shorter than the block.
class PayloadBlock {
  public:
    // Makes the block anew where something has changed. It holds `at_least` messages, and random ones for
    // about so many bytes.
    void set(Payload payload, std::uint64_t message_size, std::uint64_t at_least, std::uint64_t random_bytes);

    // Room for `count` messages (at most `at_least`), one behind the other, to write their headers into.
    char* next(std::uint64_t count);

  private:
    Payload payload_ = Payload::zeros;
    std::uint64_t message_size_ = 0;
    std::uint64_t messages_ = 0;  // that the block holds
    std::uint64_t at_least_ = 0;
    std::uint64_t place_ = 0;
    std::vector<char> bytes_;
};

}  // namespace hydra
