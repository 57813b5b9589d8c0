// A publisher to which all subscribers of a process connect: its address, and the order in which they
// connect.
//
// Thousands of connections at once overflow the listen queue, and a dropped attempt is repeated only a second
// later. So the number of attempts is limited: the next client connects when the publisher has answered one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "zmtp/address.h"

namespace hydra {

class ZmtpConnection;

class ConnectQueue {
  public:
    // `tend_at_ns` is when a connection of this process must next be tended.
    ConnectQueue(std::string endpoint, std::int64_t& tend_at_ns)
        : endpoint_(std::move(endpoint)), address_(address_of(endpoint_)), tend_at_ns_(tend_at_ns) {}

    // The connection connects, now or when its turn comes.
    void enter(ZmtpConnection& connection);
    // The connection no longer waits.
    void leave(const ZmtpConnection& connection);
    // A connecting client was answered, or has given up.
    void settled();
    // The connection is answered, and subscribes at once, or when no client waits to connect. Until then the
    // publisher sends no probes, which would delay its answers.
    void subscribe(ZmtpConnection& connection);

    // A connection to this publisher must be tended by then.
    void tend_by(std::int64_t at_ns) { tend_at_ns_ = std::min(tend_at_ns_, at_ns); }

    [[nodiscard]] const std::string& endpoint() const { return endpoint_; }
    [[nodiscard]] const Address& address() const { return address_; }
    // The source address of the next connection.
    Address source();

  private:
    void dial_next();
    void subscribe_answered();

    std::string endpoint_;
    Address address_;
    std::int64_t& tend_at_ns_;
    std::size_t dialling_ = 0;
    std::uint64_t dialled_ = 0;
    bool busy_ = false;  // in dial_next
    std::deque<ZmtpConnection*> waiting_;
    std::vector<ZmtpConnection*> answered_;  // answered connections without a subscription
};

}  // namespace hydra
