// A publisher's address, as a socket address.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace hydra {

struct Address {
    sockaddr_storage bytes{};
    socklen_t size = 0;

    [[nodiscard]] int family() const { return bytes.ss_family; }
    [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

// The address in a publisher's endpoint: tcp://HOST:PORT, where HOST is a name, an IPv4 address or an IPv6
// address in brackets, ipc://PATH, or ipc://@NAME in the abstract namespace. Resolving a name may take a
// while. TransportError: it is none of these, or the name does not exist.
Address address_of(const std::string& endpoint);

// The source address for a connection to a destination on this host's IPv4 loopback: another one for every
// few thousand connections, and for every process. From one address only as many connections to a publisher
// are possible as there are ports, and after half of them the kernel needs milliseconds to find a free one.
// For other destinations: an address without a size, so the kernel chooses.
Address source_for(const Address& destination, std::uint32_t process, std::uint64_t dialled);

}  // namespace hydra
