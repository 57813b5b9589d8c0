// Base64 with padding: RFC 4648, section 4. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydra {

std::string to_base64(const std::vector<std::uint8_t>& bytes);

// Nothing if the text is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace hydra
