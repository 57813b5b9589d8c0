// Where a publisher is, as a socket's address.
#pragma once

#include <sys/socket.h>

#include <string>

namespace hydra {

struct Address {
    sockaddr_storage bytes{};
    socklen_t size = 0;

    [[nodiscard]] int family() const { return bytes.ss_family; }
    [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

// Of an endpoint as publishers name it: tcp://HOST:PORT, where HOST is a name, an IPv4 address or an IPv6 one
// in brackets, ipc://PATH, or ipc://@NAME in the abstract namespace. A name is looked up, which may take a
// while. TransportError: it is none of these, or nobody has the name.
Address address_of(const std::string& endpoint);

}  // namespace hydra
