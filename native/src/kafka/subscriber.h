// A librdkafka consumer that has every partition of the topic to itself, from exactly the offsets it was
// told.
//
// It is the library's simple consumer: no group, nothing committed. All partitions, and the library's errors,
// wake one descriptor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/transport.h"
#include "kafka/handles.h"
#include "kafka/properties.h"
#include "kafka/settings.h"
#include "kafka/wake_fd.h"

namespace hydra {

class KafkaSubscriber final : public SubscriberTransport {
  public:
    KafkaSubscriber() = default;
    ~KafkaSubscriber() override;
    KafkaSubscriber(const KafkaSubscriber&) = delete;
    KafkaSubscriber& operator=(const KafkaSubscriber&) = delete;

    void configure(const Configure& command) override;
    bool receive(Batch& batch) override;
    [[nodiscard]] int wake_fd() const override { return wake_.fd(); }
    void reconnect() override;
    std::uint64_t undrained(const SystemObject& system) override;

  private:
    void open();
    void close();
    void start();
    void stop();
    void take(Batch& batch, const rd_kafka_message_t& message);
    void note(rd_kafka_resp_err_t error, const char* what);
    [[nodiscard]] bool stands_at(const Offsets& offsets) const;

    WakeFd wake_;
    KafkaHandle kafka_;
    KafkaQueue errors_;
    KafkaQueue messages_;  // of all partitions
    KafkaTopicHandle topic_;
    bool started_ = false;
    Properties config_;  // what kafka_ was made from
    std::string topic_name_;
    std::vector<std::int32_t> partitions_;
    std::vector<std::int64_t> positions_;  // by partition number
    std::string trouble_;
};

}  // namespace hydra
