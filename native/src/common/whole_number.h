// A check for options that are whole numbers.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace hydra {

// Digits only: the library's own conversion accepts more.
inline CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
    return CLI::Validator(
        [least, most](std::string& text) -> std::string {
            std::uint64_t value = 0;
            const char* end = text.data() + text.size();
            const auto [stopped, error] = std::from_chars(text.data(), end, value);
            if (error == std::errc() && stopped == end && value >= least && value <= most) {
                return "";
            }
            return "'" + text + "' is no whole number from " + std::to_string(least) + " to " +
                   std::to_string(most);
        },
        "N");
}

}  // namespace hydra
