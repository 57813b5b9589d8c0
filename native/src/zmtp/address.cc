#include "zmtp/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "common/transport.h"

namespace hydra {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";

[[noreturn]] void refuse(const std::string& endpoint, const std::string& why) {
    throw TransportError("cannot connect to '" + endpoint + "': " + why);
}

Address of_path(const std::string& endpoint, std::string_view path) {
    sockaddr_un un{};
    un.sun_family = AF_UNIX;
    if (path.size() < 2 || path.size() >= sizeof un.sun_path) {
        refuse(endpoint, "the path in the address is empty or too long");
    }
    std::memcpy(un.sun_path, path.data(), path.size());
    const bool abstract = path.front() == '@';
    if (abstract) {
        un.sun_path[0] = '\0';
    }
    Address address;
    std::memcpy(&address.bytes, &un, sizeof un);
    // An abstract name is all of its bytes, without a zero at the end.
    address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (abstract ? 0 : 1));
    return address;
}

Address of_host(const std::string& endpoint, std::string_view place) {
    const std::size_t colon = place.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == place.size()) {
        refuse(endpoint, "the address is not tcp://HOST:PORT");
    }
    std::string host(place.substr(0, colon));
    const std::string port(place.substr(colon + 1));
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    }
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (const int failed = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); failed != 0) {
        refuse(endpoint, gai_strerror(failed));
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
    Address address;
    std::memcpy(&address.bytes, all->ai_addr, all->ai_addrlen);
    address.size = all->ai_addrlen;
    return address;
}

}  // namespace

Address source_for(const Address& destination, std::uint32_t process, std::uint64_t dialled) {
    // On Linux the loopback has all of 127.0.0.0/8.
    constexpr std::uint32_t network = 127U << 24;
    constexpr std::uint64_t from_one = 4096;
    Address source;
    if (destination.family() != AF_INET) {
        return source;
    }
    sockaddr_in in{};
    std::memcpy(&in, &destination.bytes, sizeof in);
    if ((ntohl(in.sin_addr.s_addr) & 0xFF000000U) != network) {
        return source;
    }
    // Not 127.0.0.x, where other processes may listen; and in no byte the first or the last number.
    const auto turn = static_cast<std::uint32_t>(dialled / from_one % 254);
    in.sin_addr.s_addr =
        htonl(network | (1 + process / 254 % 254) << 16 | (1 + process % 254) << 8 | (1 + turn));
    in.sin_port = 0;
    std::memcpy(&source.bytes, &in, sizeof in);
    source.size = sizeof in;
    return source;
}

Address address_of(const std::string& endpoint) {
    const std::string_view text = endpoint;
    if (text.starts_with(kTcp)) {
        return of_host(endpoint, text.substr(kTcp.size()));
    }
    if (text.starts_with(kIpc)) {
        return of_path(endpoint, text.substr(kIpc.size()));
    }
    refuse(endpoint, "the address begins neither with tcp:// nor with ipc://");
}

}  // namespace hydra
