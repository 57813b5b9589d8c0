// What topics and keys add to a subscriber's account: the ledger counts ranks of the subscriber's own
// messages instead of sequences if it has only a part of the topics; the hot topics are counted apart; and if
// messages have keys, order is checked by topic and key. Pure. (Python: hydra/client/message_topics.py.)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/batch.h"
#include "common/histogram.h"
#include "common/ledger.h"
#include "common/messages/reports.h"
#include "common/topic_sequences.h"
#include "common/traffic.h"

namespace hydra {

// What the subscribers of a process share in a step.
class SharedTraffic {
  public:
    explicit SharedTraffic(const Traffic& traffic);

    [[nodiscard]] const std::shared_ptr<const Traffic>& traffic() const { return traffic_; }
    // The sequences of all topics, for a subscriber that has all.
    TopicSequences& all(Id publisher);
    [[nodiscard]] const std::shared_ptr<const TopicSet>& every_topic() const { return every_topic_; }
    [[nodiscard]] Batch& ranked() { return ranked_; }

  private:
    std::shared_ptr<const Traffic> traffic_;
    std::shared_ptr<const TopicSet> every_topic_;
    std::map<Id, TopicSequences> all_;
    Batch ranked_;
};

class TopicAccount {
  public:
    TopicAccount(std::shared_ptr<SharedTraffic> shared, Id client, const Configure& command);

    // Enters a batch that was read at now_ns; counts latencies only if it is `timed`. Returns the batch for
    // the ledger, which is valid until the next call for any subscriber of the process.
    const Batch& enter(const Batch& batch, std::int64_t now_ns, bool timed);

    // What each publisher sent, for the ledger.
    std::vector<PublisherTotal> expect(const std::vector<PublisherTotal>& sent);

    // Completes a report that has the ledger's counts; `expected` is what `expect` returned.
    void complete(SubscriberReport& report, const Ledger& ledger,
                  const std::vector<PublisherTotal>& expected);

  private:
    struct Lane {
        PublisherTraffic traffic;
        std::optional<TopicSequences> part{};     // if the subscriber has a part of the topics
        TopicSequences* sequences = nullptr;      // null with one topic
        std::vector<std::uint64_t> after_last{};  // by topic and key: one more than the last sequence
        std::uint64_t reordered = 0;
        std::uint64_t foreign = 0;  // messages of other topics
    };

    Lane& lane(Id publisher);
    bool enter(Lane& lane, Header& header, std::int64_t now_ns, bool timed);

    std::shared_ptr<SharedTraffic> shared_;
    std::uint32_t epoch_;
    std::uint32_t keys_;
    bool part_;                            // whether it has only a part of the topics
    std::shared_ptr<const TopicSet> own_;  // its topics
    std::map<Id, Lane> lanes_;             // by publisher
    LatencyRecorder hot_latency_;
    std::uint64_t hot_expected_ = 0;
};

}  // namespace hydra
