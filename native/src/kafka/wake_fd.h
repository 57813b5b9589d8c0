// A descriptor with which librdkafka's queues wake the client's loop.
#pragma once

#include <librdkafka/rdkafka.h>

namespace hydra {

// The library writes to it whenever an empty queue gets an event. The loop watches it edge-triggered, so it
// is never read: an eventfd can hold 2⁶⁴ − 2 of these writes.
class WakeFd {
  public:
    WakeFd();
    ~WakeFd();
    WakeFd(const WakeFd&) = delete;
    WakeFd& operator=(const WakeFd&) = delete;

    [[nodiscard]] int fd() const { return fd_; }

    // May be called from any thread.
    void wake() const;
    void wake_with(rd_kafka_queue_t* queue) const;
    // The library keeps a queue for some time after its owner has released it.
    static void let_go(rd_kafka_queue_t* queue);

  private:
    int fd_;
};

}  // namespace hydra
