// The limits of this host at which no connection can be made: then no server has refused anything. (Python:
// hydra/client/linux_process.py.)
#pragma once

#include <string>
#include <string_view>

namespace hydra {

// The name of the limit that this number of an error (errno) stands for, or "".
std::string_view local_limit(int error);

// The name of the limit whose text, as the C library has it, is part of a library's text, or "".
std::string_view local_limit_in(std::string_view text);

// The kernel's text for an error, with the name of the limit that it stands for.
std::string kernel_words(int error);

}  // namespace hydra
