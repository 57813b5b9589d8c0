// A librdkafka consumer: of every partition of its topics, from the offsets in the command, or of its part as
// a member of a consumer group.
//
// Without a consumer group it is the library's simple consumer, and nothing is committed. All partitions, and
// the library's errors, wake one descriptor; the errors are only read if there are some.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/transport.h"
#include "kafka/broker_connections.h"
#include "kafka/handles.h"
#include "kafka/member.h"
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

    void choose(const TopicFilter& filter) override;
    void configure(const Configure& command) override;
    void settle() override;
    bool receive(Batch& batch) override;
    [[nodiscard]] int wake_fd() const override { return wake_.fd(); }
    void reconnect() override;
    void leave() override;
    // Empty unless the step measures connecting: in any other step a broker may be killed for good, and the
    // client continues with the others.
    [[nodiscard]] std::vector<Disconnection> disconnections() const override {
        return measured_ ? connections_.disconnections() : std::vector<Disconnection>();
    }
    [[nodiscard]] std::string local_limit() const override { return connections_.limit(); }
    std::uint64_t undrained(const SystemObject& system) override;
    [[nodiscard]] SystemObject report_system() const override;

  private:
    // The state of one call of `receive`.
    struct Taking {
        KafkaSubscriber& subscriber;
        Batch& batch;
        bool more = false;
        std::int32_t partition = -1;  // of a member: partition of the last messages, and offset after them
        std::int64_t position = 0;
    };

    // A topic with its partitions and the positions in them, by partition number.
    struct Source {
        std::string name;
        std::uint32_t number = 0;
        KafkaTopicHandle topic{};
        std::vector<std::int32_t> partitions{};
        std::vector<std::int64_t> positions{};
    };

    void open();
    void close();
    void start();
    void stop();
    void take(Taking& into, const rd_kafka_message_t& message);
    void tend_member(Batch& batch);
    void note(rd_kafka_resp_err_t error, const char* what);
    [[nodiscard]] std::vector<Source> wanted(const KafkaSettings& kafka) const;
    [[nodiscard]] Source& source_of(const rd_kafka_message_t& message);
    [[nodiscard]] bool stands_at(const std::vector<Source>& wanted) const;

    WakeFd wake_;
    BrokerConnections connections_;
    bool measured_ = false;  // whether the step measures connecting
    KafkaHandle kafka_;
    KafkaQueue errors_;
    std::atomic<bool> complained_ = false;  // errors_ has an event
    KafkaQueue messages_;                   // messages of all partitions
    std::unique_ptr<KafkaMember> member_;   // of a consumer group; ends after kafka_, whose thread calls it
    std::vector<Header> probes_;            // stand for received ones if the member has no partition
    bool started_ = false;
    Properties config_;                     // the properties of kafka_
    std::string topic_name_;                // of a member's topic, or the beginning of the names of several
    std::optional<Offsets> left_at_;        // where a member that has left continues
    Membership::Rebalances left_with_;      // and with which rebalances in this step
    std::vector<std::uint32_t> chosen_;     // topics of the next step; empty: one topic without a number
    std::vector<Source> sources_;           // none for a member
    std::vector<std::uint32_t> source_of_;  // index in sources_, by topic number; only with several topics
    std::string trouble_;
};

}  // namespace hydra
