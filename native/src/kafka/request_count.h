// The number of produce requests that were sent, counted by librdkafka's own threads.
#pragma once

#include <librdkafka/rdkafka.h>

#include <atomic>
#include <cstdint>

namespace hydra {

struct ProduceRequests {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;

    ProduceRequests operator-(const ProduceRequests& earlier) const {
        return {count - earlier.count, bytes - earlier.bytes};
    }
};

// Outlives the client whose requests it counts.
class RequestCounter {
  public:
    // Counts the requests of the client that is made from this configuration.
    void count(rd_kafka_conf_t* conf) {
        rd_kafka_conf_interceptor_add_on_new(
            conf, "hydra",
            [](rd_kafka_t* kafka, const rd_kafka_conf_t*, void* requests, char*, std::size_t) {
                return rd_kafka_interceptor_add_on_request_sent(kafka, "hydra", sent, requests);
            },
            this);
    }

    [[nodiscard]] ProduceRequests so_far() const { return {count_.load(), bytes_.load()}; }

  private:
    static constexpr std::int16_t kProduce = 0;  // in Kafka's protocol

    static rd_kafka_resp_err_t sent(rd_kafka_t*, int, const char*, std::int32_t, std::int16_t api,
                                    std::int16_t, std::int32_t, std::size_t bytes, void* requests) {
        if (api == kProduce) {
            auto& it = *static_cast<RequestCounter*>(requests);
            it.count_.fetch_add(1, std::memory_order_relaxed);
            it.bytes_.fetch_add(bytes, std::memory_order_relaxed);
        }
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }

    std::atomic<std::uint64_t> count_ = 0;
    std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace hydra
