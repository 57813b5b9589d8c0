// The address of a socket file.
#pragma once

#include <sys/un.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace hydra {

inline sockaddr_un unix_address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        throw std::length_error("too long for a socket: " + path);
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

}  // namespace hydra
