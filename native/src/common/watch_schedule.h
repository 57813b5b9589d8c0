// What a relay was told to watch: when it is to be sampled, and when what was sampled is to be told. No
// clock, no file and no socket: the times are given, and others read and tell.
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
    using Open = std::function<Reader()>;                   // for each watch anew
    using Tell = std::function<bool(const HostReadings&)>;  // false: it does not fit into a message

    WatchSchedule(Ids ids, Open open, Tell tell)
        : ids_(std::move(ids)), open_(std::move(open)), tell_(std::move(tell)) {}

    void obey(const Watch& watch, std::int64_t now_ns);

    // Samples and tells what is due.
    void go_on(std::int64_t now_ns);

    // When something is due again; kNeverNs: nothing is watched.
    [[nodiscard]] std::int64_t due_ns() const;

  private:
    void tell();
    void tell(const HostReadings& host);
    void forget();
    [[nodiscard]] std::int64_t tell_due_ns() const;

    Ids ids_;
    Open open_;
    Tell tell_;
    std::uint32_t epoch_ = 0;    // the highest that was heard of
    bool ended_ = true;          // it was told to
    std::int64_t every_ns_ = 0;  // 0: nothing is watched
    bool host_ = false;
    Reader read_;
    std::int64_t sample_due_ns_ = 0;
    std::int64_t forget_due_ns_ = 0;
    std::vector<Sample> samples_;
};

}  // namespace hydra
