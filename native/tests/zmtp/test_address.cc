#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <string>

#include "common/transport.h"
#include "zmtp/address.h"

using namespace hydra;

TEST_CASE("addresses of every family") {
    const Address four = address_of("tcp://127.0.0.1:5556");
    CHECK(four.family() == AF_INET);
    CHECK(ntohs(reinterpret_cast<const sockaddr_in*>(four.get())->sin_port) == 5556);
    CHECK(address_of("tcp://localhost:1").size > 0);
    const Address six = address_of("tcp://[::1]:5556");
    CHECK(six.family() == AF_INET6);
    CHECK(ntohs(reinterpret_cast<const sockaddr_in6*>(six.get())->sin6_port) == 5556);
    const Address path = address_of("ipc:///tmp/x");
    CHECK(path.family() == AF_UNIX);
    CHECK(path.size == offsetof(sockaddr_un, sun_path) + 7);
    const Address abstract = address_of("ipc://@hydra-1");
    CHECK(abstract.size == offsetof(sockaddr_un, sun_path) + 8);
    CHECK(reinterpret_cast<const sockaddr_un*>(abstract.get())->sun_path[0] == '\0');
}

TEST_CASE("a loopback is dialled from another address every few thousand times") {
    const auto text = [](const Address& address) -> std::string {
        std::array<char, INET_ADDRSTRLEN> shown{};
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr, shown.data(),
                  shown.size());
        return address.size == 0 ? "" : shown.data();
    };
    const Address loopback = address_of("tcp://127.0.0.1:5556");
    CHECK(text(source_for(loopback, 0, 0)) == "127.1.1.1");
    CHECK(text(source_for(loopback, 0, 4095)) == "127.1.1.1");
    CHECK(text(source_for(loopback, 0, 4096)) == "127.1.1.2");
    CHECK(text(source_for(loopback, 254 * 254 - 1, 4096ULL * 254 - 1)) == "127.254.254.254");
    CHECK(text(source_for(loopback, 254 * 254 + 300, 4096ULL * 254)) == "127.2.47.1");
    CHECK(reinterpret_cast<const sockaddr_in*>(source_for(loopback, 0, 0).get())->sin_port == 0);
    CHECK(source_for(address_of("tcp://10.0.0.1:5556"), 0, 0).size == 0);
    CHECK(source_for(address_of("tcp://[::1]:5556"), 0, 0).size == 0);
    CHECK(source_for(address_of("ipc://@x"), 0, 0).size == 0);
}

TEST_CASE("what is no address is named") {
    for (const std::string endpoint :
         {"nonsense", "", "tcp://", "tcp://host", "tcp://:5", "tcp://127.0.0.1:", "tcp://127.0.0.1:http",
          "tcp://no such host:5", "udp://127.0.0.1:5", "ipc://", "ipc://@"}) {
        CAPTURE(endpoint);
        CHECK_THROWS_WITH_AS(address_of(endpoint), doctest::Contains(("'" + endpoint + "'").c_str()),
                             TransportError);
    }
    CHECK_THROWS_AS(address_of("ipc://" + std::string(200, 'x')), TransportError);
}
