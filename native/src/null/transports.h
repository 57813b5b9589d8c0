// Both ends without a connection. (Python: hydra/cli/ceiling_client.py.)
#pragma once

#include <cstdint>
#include <string>

#include "common/transport.h"

namespace hydra {

// When subscribers receive (CLOCK_MONOTONIC), and how far the step's clock is ahead of it.
struct NullSettings {
    std::int64_t from_ns = 0;
    std::int64_t until_ns = 0;
    std::int64_t ahead_ns = 0;

    static void describe(auto& it, auto& fields) {
        fields.required("from_ns", it.from_ns);
        fields.required("until_ns", it.until_ns);
        fields.required("ahead_ns", it.ahead_ns);
    }
};

// Accepts every message at once.
class NullPublisher final : public PublisherTransport {
  public:
    std::string configure(const Configure& command) override;
    void probe(const Header& header) override;
    std::size_t send(const Chunk& chunk) override;
    void close() override {}
};

// Has as many messages as are requested, from one publisher.
class NullSubscriber final : public SubscriberTransport {
  public:
    NullSubscriber();
    NullSubscriber(const NullSubscriber&) = delete;
    NullSubscriber& operator=(const NullSubscriber&) = delete;
    ~NullSubscriber() override;

    void configure(const Configure& command) override;
    bool receive(Batch& batch) override;
    [[nodiscard]] int wake_fd() const override { return timer_; }
    void reconnect() override {}
    void leave() override {}

  private:
    int timer_;
    NullSettings settings_;
    Header next_{};
    std::uint32_t size_ = 0;
};

}  // namespace hydra
