#include "common/local_limits.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace hydra {
namespace {

struct LocalLimit {
    int error;
    std::string_view name;
};

// The text of ENFILE contains that of EMFILE.
constexpr std::array<LocalLimit, 6> kLimits{{{EADDRNOTAVAIL, "EADDRNOTAVAIL"},
                                             {EADDRINUSE, "EADDRINUSE"},
                                             {ENFILE, "ENFILE"},
                                             {EMFILE, "EMFILE"},
                                             {ENOBUFS, "ENOBUFS"},
                                             {ENOMEM, "ENOMEM"}}};

template <typename Is>
std::string_view first(Is is) {
    const auto* const found = std::ranges::find_if(kLimits, is);
    return found == kLimits.end() ? "" : found->name;
}

}  // namespace

std::string_view local_limit(int error) {
    return first([&](const LocalLimit& limit) { return limit.error == error; });
}

std::string_view local_limit_in(std::string_view text) {
    return first([&](const LocalLimit& limit) {
        // The text of a server's bind that failed is no text of a limit.
        return text.find(limit.name) != text.npos ||
               (limit.error != EADDRINUSE && text.find(std::strerror(limit.error)) != text.npos);
    });
}

std::string kernel_words(int error) {
    const std::string_view name = local_limit(error);
    return std::strerror(error) + (name.empty() ? "" : " (" + std::string(name) + ")");
}

}  // namespace hydra
