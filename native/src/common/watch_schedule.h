// A relay's watch: when to take samples, and when to send them. No clock, no file and no socket: the times
// are given, and others read and send.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"

namespace hydra {

class WatchSchedule {
  public:
    using Reader = std::function<Sample(std::int64_t now_ns, bool host)>;
    using Open = std::function<Reader()>;                   // called for each watch
    using Send = std::function<bool(const HostReadings&)>;  // sends; false: it does not fit into a message

    WatchSchedule(Ids ids, Open open, Send send)
        : ids_(std::move(ids)), open_(std::move(open)), send_(std::move(send)) {}

    void obey(const Watch& watch, std::int64_t now_ns);

    // Takes and sends the samples that are due.
    void work(std::int64_t now_ns);

    // When something will be due next; kNeverNs: there is no watch.
    [[nodiscard]] std::int64_t due_ns() const;

  private:
    void send();
    void send(const HostReadings& host);
    void forget();
    [[nodiscard]] std::int64_t send_due_ns() const;

    Ids ids_;
    Open open_;
    Send send_;
    std::uint32_t epoch_ = 0;    // the highest that was received
    bool ended_ = true;          // the watch has ended
    std::int64_t every_ns_ = 0;  // 0: there is no watch
    bool host_ = false;
    Reader read_;
    std::int64_t sample_due_ns_ = 0;
    std::int64_t forget_due_ns_ = 0;
    std::vector<Sample> samples_;
};

}  // namespace hydra
