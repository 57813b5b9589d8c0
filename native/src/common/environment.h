// The environment variables of a group; secrets among them are never printed.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace hydra {

// A variable is missing or malformed; the text names it.
struct EnvironmentError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Credentials {
    std::string endpoint;
    std::string server_public;
    std::string client_public;
    std::string client_secret;
};

struct Environment {
    Credentials credentials;
    std::optional<int> lifeline;
    double welcome_within_s = 60;
    std::uint64_t memory_limit_bytes = 0;  // for publishers; 0: no limit
};

// Throws EnvironmentError.
Environment read_environment();

// "" if the variable is not set.
std::string variable(const char* name);

// None if the variable is not set. Throws EnvironmentError.
std::optional<double> number_variable(const char* name);

// Whether the text is a CURVE key in Z85.
bool is_key(const std::string& text);

}  // namespace hydra
