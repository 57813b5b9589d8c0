#include "common/environment.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace hydra {
namespace {

constexpr std::string_view kZ85 =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

bool is_endpoint(std::string_view text) {
    constexpr std::string_view scheme = "tcp://";
    const std::size_t colon = text.rfind(':');
    if (!text.starts_with(scheme) || colon <= scheme.size()) {
        return false;
    }
    const std::string_view host = text.substr(scheme.size(), colon - scheme.size());
    const std::string_view port = text.substr(colon + 1);
    return std::ranges::none_of(host, [](unsigned char c) { return c == '/' || std::isspace(c); }) &&
           !port.empty() && port.size() <= 5 &&
           std::ranges::all_of(port, [](unsigned char c) { return std::isdigit(c); });
}

std::string needed(const char* name) {
    std::string text = variable(name);
    if (text.empty()) {
        throw EnvironmentError(std::string("the environment variable ") + name +
                               " is not set: groups are started by hydra, not by hand");
    }
    return text;
}

std::string key(const char* name) {
    std::string text = needed(name);
    if (!is_key(text)) {
        throw EnvironmentError(std::string("the environment variable ") + name +
                               " is no CURVE key (40 characters of Z85)");
    }
    return text;
}

}  // namespace

std::string variable(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? "" : text;
}

std::optional<double> number_variable(const char* name) {
    const std::string text = variable(name);
    if (text.empty()) {
        return std::nullopt;
    }
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stopped != end || !(value >= 0 && value <= 1e18)) {
        throw EnvironmentError(std::string("the environment variable ") + name + " is no number: '" + text +
                               "'");
    }
    return value;
}

bool is_key(const std::string& text) {
    return text.size() == 40 && text.find_first_not_of(kZ85) == std::string::npos;
}

Environment read_environment() {
    Environment it;
    it.credentials.endpoint = needed("HYDRA_CONTROL");
    if (!is_endpoint(it.credentials.endpoint)) {
        throw EnvironmentError("the environment variable HYDRA_CONTROL is no endpoint (tcp://host:port): '" +
                               it.credentials.endpoint + "'");
    }
    it.credentials.server_public = key("HYDRA_CONTROL_SERVER_KEY");
    it.credentials.client_public = key("HYDRA_CONTROL_CLIENT_KEY");
    it.credentials.client_secret = key("HYDRA_CONTROL_CLIENT_SECRET");
    if (const auto lifeline = number_variable("HYDRA_LIFELINE")) {
        it.lifeline = static_cast<int>(*lifeline);
        if (*lifeline > 1e6 || *it.lifeline != *lifeline) {
            throw EnvironmentError("the environment variable HYDRA_LIFELINE is no descriptor");
        }
    }
    it.welcome_within_s = number_variable("HYDRA_WELCOME_S").value_or(it.welcome_within_s);
    it.memory_limit_bytes =
        static_cast<std::uint64_t>(number_variable("HYDRA_MEMORY_LIMIT_BYTES").value_or(0));
    return it;
}

}  // namespace hydra
