// A publisher as all subscribers of a process see it: its address, and who may dial it next.
//
// Thousands that dial at once overflow the listen queue, and what is thrown away there is tried again only a
// second later. So only some are under way at a time: the next one dials when the publisher has answered one.
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

class Destination {
  public:
    // `tend_at_ns` is when a connection of this process is to be tended next.
    Destination(std::string endpoint, std::int64_t& tend_at_ns)
        : endpoint_(std::move(endpoint)), address_(address_of(endpoint_)), tend_at_ns_(tend_at_ns) {}

    // It dials, now or when it is its turn.
    void enter(ZmtpConnection& connection);
    // It waits no longer.
    void leave(const ZmtpConnection& connection);
    // One that dialled has been answered, or has given up.
    void settled();
    // It is answered, and subscribes: at once, or when nobody waits for dialling any more. Until then the
    // publisher has nobody to send probes to, which would keep it from answering.
    void subscribe(ZmtpConnection& connection);

    // A connection to it is to be tended by then.
    void tend_by(std::int64_t at_ns) { tend_at_ns_ = std::min(tend_at_ns_, at_ns); }

    [[nodiscard]] const std::string& endpoint() const { return endpoint_; }
    [[nodiscard]] const Address& address() const { return address_; }
    // Where the next connection is to dial from.
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
    std::vector<ZmtpConnection*> answered_;  // and not subscribed yet
};

}  // namespace hydra
