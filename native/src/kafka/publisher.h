// A librdkafka producer; the sequences in its delivery reports are the account.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/backoff.h"
#include "common/transport.h"
#include "kafka/broker_connections.h"
#include "kafka/handles.h"
#include "kafka/properties.h"
#include "kafka/reports.h"
#include "kafka/request_count.h"
#include "kafka/wake_fd.h"

namespace hydra {

class KafkaPublisher final : public PublisherTransport {
  public:
    KafkaPublisher() = default;
    ~KafkaPublisher() override;
    KafkaPublisher(const KafkaPublisher&) = delete;
    KafkaPublisher& operator=(const KafkaPublisher&) = delete;

    std::string configure(const Configure& command) override;
    void probe(const Header& header) override;
    std::size_t send(const Chunk& chunk) override;
    void poll() override;
    [[nodiscard]] int wake_fd() const override { return wake_.fd(); }
    bool flush(double timeout_s) override;
    void close() override;
    std::optional<Delivery> delivery() override;
    [[nodiscard]] std::optional<std::uint64_t> accepted() const override;
    [[nodiscard]] FirstReason refused() const override { return reports_.refused(); }
    [[nodiscard]] ConnectionLosses losses() const override { return connections_.losses(); }
    [[nodiscard]] SystemObject report_system() const override;
    // The largest batch by default, so no compressor sees a message twice.
    [[nodiscard]] std::uint64_t block_bytes() const override { return 1024 * 1024; }

  private:
    void open(const Properties& config);
    void learn_partitions(const std::vector<std::string>& names);
    std::size_t offer_each(const Chunk& chunk, std::size_t from, std::size_t count);
    std::size_t offer(const Chunk& chunk, std::size_t from, std::size_t count);
    bool flush_until(std::int64_t deadline_ns);

    WakeFd wake_;
    RequestCounter requests_;  // librdkafka's threads use these two as long as kafka_ exists
    BrokerConnections connections_;
    KafkaHandle kafka_;
    KafkaQueue queue_;                      // delivery reports and errors
    std::vector<KafkaTopicHandle> topics_;  // by number
    std::uint32_t keys_ = 0;                // number of different keys; 0: messages have none
    Properties config_;                     // what kafka_ was made from
    std::vector<std::int32_t> partitions_;  // of each topic; ascending
    std::uint32_t signalled_ = 1;           // topics with probes
    bool acknowledges_ = true;
    std::uint64_t batch_bytes_ = 0;
    std::uint64_t payload_bytes_ = 0;  // payload bytes accepted in this epoch
    ProduceRequests before_;           // requests before this epoch
    Backoff hurried_;                  // when lingering messages are sent during a wait
    DeliveryReports reports_{connections_};
    std::vector<rd_kafka_message_t> offered_;  // messages offered to librdkafka in one call
};

}  // namespace hydra
