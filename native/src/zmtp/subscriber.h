// A subscriber on plain sockets, one to each of its publishers. The subscriber has no queue: messages that it
// has not read wait in the kernel, and then at the publisher.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/transport.h"
#include "zmtp/connect_queue.h"
#include "zmtp/connection.h"
#include "zmtp/topics.h"

namespace hydra {

// The state that all subscribers of a process share.
struct ZmtpProcess {
    explicit ZmtpProcess(int rcvbuf) : rcvbuf_bytes(rcvbuf) {}

    // The reference is valid as long as the process lives.
    ConnectQueue& queue_of(const std::string& endpoint);

    int rcvbuf_bytes;
    std::vector<char> buffer = std::vector<char>(64 * 1024);  // for one read at a time
    Batch dropped{};                                          // messages between two steps
    std::int64_t tend_at_ns = kNeverNs;                       // the earliest of all connections
    std::map<std::string, ConnectQueue> queues{};
};

class ZmtpSubscriber final : public SubscriberTransport {
  public:
    explicit ZmtpSubscriber(ZmtpProcess& process) : process_(process) {}

    void choose(const TopicFilter& filter) override { chosen_ = zmtp_topics(filter); }
    void configure(const Configure& command) override;
    bool receive(Batch& batch) override;
    void watch(Waiter& waiter, std::uint64_t token) override;
    void unwatch() override;
    void ended() override;
    void arrived_between_steps() override;
    [[nodiscard]] std::int64_t tend_at_ns() const override { return process_.tend_at_ns; }
    std::int64_t tend(std::int64_t now_ns, bool between_steps) override;
    void reconnect() override;
    void leave() override;
    [[nodiscard]] SystemObject report_system() const override;

  private:
    void connect();

    ZmtpProcess& process_;
    ZmtpTopics chosen_;  // of the next connections
    ZmtpTopics topics_;  // of the connections, which refer to it
    std::vector<std::unique_ptr<ZmtpConnection>> connections_;
    bool left_ = false;
    std::size_t next_ = 0;  // index of the connection whose turn is next
};

}  // namespace hydra
