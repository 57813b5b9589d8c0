// A descriptor that librdkafka's queues wake the client's loop with.
#pragma once

#include <librdkafka/rdkafka.h>

namespace hydra {

// It is written to whenever an empty queue gets something. Whoever waits for it watches for edges, so it is
// never read: an eventfd has room for 2⁶⁴ − 2 of them.
class WakeFd {
  public:
    WakeFd();
    ~WakeFd();
    WakeFd(const WakeFd&) = delete;
    WakeFd& operator=(const WakeFd&) = delete;

    [[nodiscard]] int fd() const { return fd_; }

    // From any thread.
    void wake() const;
    void wake_with(rd_kafka_queue_t* queue) const;
    // The library keeps a queue for some time after its owner's reference has gone.
    static void let_go(rd_kafka_queue_t* queue);

  private:
    int fd_;
};

}  // namespace hydra
