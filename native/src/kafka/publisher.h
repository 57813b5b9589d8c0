// A librdkafka producer; the sequences in its delivery reports make the account.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/payload.h"
#include "common/transport.h"
#include "kafka/handles.h"
#include "kafka/properties.h"
#include "kafka/reports.h"
#include "kafka/requests.h"
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
    void flush(double timeout_s) override;
    void close() override;
    std::optional<Delivery> delivery() override;
    [[nodiscard]] SystemObject report_system() const override;

  private:
    void open(const Properties& config);
    void learn_partitions(const std::string& name);
    void set_messages(const Settings& settings);
    std::size_t offer(const Chunk& chunk, std::size_t from);
    void flush_until(std::int64_t deadline_ns);

    WakeFd wake_;
    Requests requests_;  // librdkafka's threads count in it as long as kafka_ is there
    KafkaHandle kafka_;
    KafkaQueue queue_;  // delivery reports and errors
    KafkaTopicHandle topic_;
    Properties config_;                     // what kafka_ was made from
    std::vector<std::int32_t> partitions_;  // ascending
    bool acknowledges_ = true;
    std::uint64_t batch_bytes_ = 0;
    std::uint64_t payload_bytes_ = 0;  // of what was accepted in this epoch
    ProduceRequests before_;           // this epoch
    DeliveryReports reports_;
    // What librdkafka is offered at a time: messages side by side, of which only the headers change.
    std::uint64_t message_size_ = 0;
    PayloadBlock payload_;
    std::vector<rd_kafka_message_t> offered_;
};

}  // namespace hydra
