// Where a publisher is, as a socket's address.
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

// Of an endpoint as publishers name it: tcp://HOST:PORT, where HOST is a name, an IPv4 address or an IPv6 one
// in brackets, ipc://PATH, or ipc://@NAME in the abstract namespace. A name is looked up, which may take a
// while. TransportError: it is none of these, or nobody has the name.
Address address_of(const std::string& endpoint);

// Where to dial from, of a destination on this host's IPv4 loopback: another of its addresses for every few
// thousand connections, and for every process. From one address only as many connections to a publisher are
// possible as there are ports, and from half of them on the kernel looks for a free one for milliseconds. Of
// other destinations: an address without a size, which leaves it to the kernel.
Address source_for(const Address& destination, std::uint32_t process, std::uint64_t dialled);

}  // namespace hydra
