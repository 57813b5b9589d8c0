#include "common/topic_account.h"

#include <algorithm>
#include <utility>

namespace hydra {

SharedTraffic::SharedTraffic(const Traffic& traffic)
    : traffic_(std::make_shared<const Traffic>(traffic)),
      every_topic_(
          std::make_shared<const TopicSet>(traffic.topics, topics_of({.topics = traffic.topics}, 0))) {}

TopicSequences& SharedTraffic::all(Id publisher) {
    const PublisherTraffic traffic(traffic_, publisher);
    return all_.try_emplace(publisher, traffic.topics(), every_topic_).first->second;
}

TopicAccount::TopicAccount(std::shared_ptr<SharedTraffic> shared, Id client, const Configure& command)
    : shared_(std::move(shared)),
      epoch_(command.epoch),
      keys_(shared_->traffic()->keys),
      part_(!has_all(*shared_->traffic())),
      own_(shared_->every_topic()) {
    const Traffic& traffic = *shared_->traffic();
    if (part_) {
        own_ = std::make_shared<const TopicSet>(traffic.topics, topics_of(traffic, client));
    }
    for (const PublisherEndpoint& it : command.publishers) {
        lane(it.publisher);
    }
}

TopicAccount::Lane& TopicAccount::lane(Id publisher) {
    const auto known = lanes_.find(publisher);
    if (known != lanes_.end()) {
        return known->second;
    }
    const std::shared_ptr<const Traffic>& traffic = shared_->traffic();
    Lane& lane = lanes_.try_emplace(publisher, Lane{PublisherTraffic(traffic, publisher)}).first->second;
    if (part_) {
        lane.sequences = &lane.part.emplace(lane.traffic.topics(), own_);
    } else if (traffic->topics > 1) {
        lane.sequences = &shared_->all(publisher);
    }
    lane.after_last.resize(own_->size() * keys_);
    return lane;
}

const Batch& TopicAccount::enter(const Batch& batch, std::int64_t now_ns, bool timed) {
    Batch& ranked = shared_->ranked();
    ranked.reset(kBatchLimit);
    Id publisher = 0;
    Lane* lane = nullptr;  // of this publisher
    for (const Run& run : batch.runs()) {
        if (lane == nullptr || publisher != run.first.publisher) {
            publisher = run.first.publisher;
            const auto known = lanes_.find(publisher);
            lane = known != lanes_.end() ? &known->second : nullptr;
        }
        const bool counted = lane != nullptr && run.first.epoch == epoch_ && epoch_ != kProbeEpoch;
        for (std::uint64_t i = 0; i < run.count; ++i) {
            Header header = run.first;
            header.sequence += i;
            if (counted && header.sequence < kSequenceLimit && !enter(*lane, header, now_ns, timed)) {
                continue;
            }
            if (part_) {
                ranked.add(&header, run.size);
            }
        }
    }
    return part_ ? ranked : batch;
}

// Enters one message; its sequence becomes its rank if the subscriber has a part of the topics. False: the
// subscriber does not have the message's topic.
bool TopicAccount::enter(Lane& lane, Header& header, std::int64_t now_ns, bool timed) {
    const std::uint64_t n = header.sequence;
    if (lane.sequences != nullptr && (lane.sequences->too_far(n) || !lane.sequences->own(n))) {
        ++lane.foreign;
        return !part_;  // the ledger counts what was never sent
    }
    if (!lane.after_last.empty()) {
        std::uint64_t& after_last =
            lane.after_last[std::size_t{own_->place(lane.traffic.topic(n))} * keys_ + lane.traffic.key(n)];
        lane.reordered += n + 1 < after_last ? 1 : 0;
        after_last = std::max(after_last, n + 1);
    }
    if (lane.sequences == nullptr) {
        return true;
    }
    if (timed && lane.sequences->hot(n)) {
        hot_latency_.record_us(
            floored_us(static_cast<std::int64_t>(static_cast<std::uint64_t>(now_ns) - header.time_ns)));
    }
    if (part_) {
        header.sequence = lane.sequences->own_below(n);
    }
    return true;
}

std::vector<PublisherTotal> TopicAccount::expect(const std::vector<PublisherTotal>& sent) {
    hot_expected_ = 0;
    std::vector<PublisherTotal> expected;
    for (const PublisherTotal& total : sent) {
        TopicSequences* const sequences = lane(total.publisher).sequences;
        for (const Range& range : sequences != nullptr ? expected_ranges(total) : std::vector<Range>()) {
            hot_expected_ += sequences->hot_below(range.last + 1) - sequences->hot_below(range.first);
        }
        PublisherTotal& own = expected.emplace_back(total);
        if (!part_) {
            continue;
        }
        own = {.publisher = total.publisher, .sent = sequences->own_below(total.sent)};
        for (const Range& range : total.unacknowledged) {
            const std::uint64_t first = sequences->own_below(range.first);
            const std::uint64_t end = sequences->own_below(range.last + 1);
            if (first < end) {
                own.unacknowledged.push_back({first, end - 1});
            }
        }
    }
    return expected;
}

void TopicAccount::complete(SubscriberReport& report, const Ledger& ledger,
                            const std::vector<PublisherTotal>& expected) {
    std::uint64_t hot_missing = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        LedgerCounts& counts = report.ledgers[i];
        Lane& it = lane(counts.publisher);
        if (!it.after_last.empty()) {
            counts.reordered = it.reordered;
        }
        if (it.sequences == nullptr) {
            continue;
        }
        // Of all topics, the rank of a sequence is the sequence itself.
        for (const Range& range : ledger.all_missing(expected[i])) {
            hot_missing += it.sequences->hot_below(it.sequences->at_rank(range.last) + 1) -
                           it.sequences->hot_below(it.sequences->at_rank(range.first));
        }
        if (part_) {
            counts.extra += it.foreign;
            for (Range& range : counts.missing_ranges) {
                range = {it.sequences->at_rank(range.first), it.sequences->at_rank(range.last)};
            }
        }
    }
    if (shared_->traffic()->topics > 1) {
        report.hot =
            HotTopics{.expected = hot_expected_, .missing = hot_missing, .latency = hot_latency_.histogram()};
    }
}

}  // namespace hydra
