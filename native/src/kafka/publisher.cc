#include "kafka/publisher.h"

#include <algorithm>
#include <map>

#include "common/clock.h"
#include "common/system_fields.h"
#include "kafka/config.h"
#include "kafka/record_batch_size.h"

namespace hydra {
namespace {

constexpr std::int64_t kConnectTimeoutNs = 10 * kSecondNs;
// Time limit for one metadata request; after each the client checks whether the cluster rejects it.
constexpr int kAskForMs = 1'000;
constexpr int kFullWaitMs = 5;
constexpr std::int64_t kProbeFlushNs = 50 * kMillisecondNs;
constexpr std::int64_t kHurriedApartNs = kSecondNs;
// Messages offered to librdkafka in one call: enough to make its locks cheap, few enough for the first-level
// cache.
constexpr std::uint64_t kMostOffered = 64;
constexpr std::uint64_t kMostOfferedBytes = 16 * 1024;

std::string with_complaint(const std::string& what, const std::string& complaint) {
    return complaint.empty() ? what : what + " (" + complaint + ")";
}

TransportError not_taken(const rd_kafka_topic_t* topic, rd_kafka_resp_err_t error) {
    return TransportError(std::string("Kafka refuses a message for ") + rd_kafka_topic_name(topic) + ": " +
                          rd_kafka_err2str(error));
}

}  // namespace

KafkaPublisher::~KafkaPublisher() {
    close();
}

std::string KafkaPublisher::configure(const Configure& command) {
    const auto kafka = read_system<KafkaSettings>(command.system);
    keys_ = command.traffic ? command.traffic->keys : 0;
    Properties config = producer_config(kafka, command.settings.message_size, keys_);
    if (keys_ > 0) {
        config["partitioner"] = "murmur2";  // that of Kafka's own producer
    }
    if (kafka_ == nullptr || config != config_) {
        close();
        open(config);
    }
    learn_partitions(topic_names(kafka.topic, '-', topics_of(command)));
    offered_ = std::vector<rd_kafka_message_t>(
        std::clamp<std::uint64_t>(kMostOfferedBytes / command.settings.message_size, 1, kMostOffered));
    signalled_ = signalled_topics(command);
    acknowledges_ = kafka.acks != "0";
    batch_bytes_ = batch_limits(kafka, command.settings.message_size, keys_).batch_bytes;
    reports_.begin(partitions_.size());
    connections_.begin_step();
    payload_bytes_ = 0;
    return "";
}

void KafkaPublisher::open(const Properties& config) {
    config_ = config;
    kafka_ = open_kafka(
        RD_KAFKA_PRODUCER, config,
        // With events, the reports of a whole batch take one call.
        [](rd_kafka_conf_t* conf, void* publisher) {
            rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
            auto& it = *static_cast<KafkaPublisher*>(publisher);
            it.requests_.count(conf);
            it.connections_.watch(conf, it.config_["acks"] != "0");
            rd_kafka_conf_set_opaque(conf, publisher);
            // Called when the queue is read.
            rd_kafka_conf_set_throttle_cb(
                conf, [](rd_kafka_t*, const char*, std::int32_t, int throttle_ms, void* opaque) {
                    static_cast<KafkaPublisher*>(opaque)->reports_.throttle(throttle_ms);
                });
        },
        this);
    queue_.reset(rd_kafka_queue_get_main(kafka_.get()));
    wake_.wake_with(queue_.get());
    reports_.forget_complaint();
}

// Unsent messages are discarded; nothing is waited for.
void KafkaPublisher::close() {
    if (kafka_ == nullptr) {
        return;
    }
    rd_kafka_purge(kafka_.get(),
                   RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
    reports_.drain(queue_.get(), 0);
    connections_.end();
    topics_.clear();
    WakeFd::let_go(queue_.get());
    queue_.reset();
    kafka_.reset();
}

// Requests the partitions, which also opens the connection before the first message.
void KafkaPublisher::learn_partitions(const std::vector<std::string>& names) {
    std::vector<KafkaTopicHandle> topics;
    for (const std::string& name : names) {
        topics.push_back(open_topic(kafka_.get(), name));
    }
    // Without a topic it answers for all that this client has opened, also in earlier steps.
    rd_kafka_topic_t* const one = topics.size() == 1 ? topics.front().get() : nullptr;
    const rd_kafka_metadata_t* metadata = nullptr;
    const std::int64_t deadline_ns = monotonic_ns() + kConnectTimeoutNs;
    while (true) {
        const rd_kafka_resp_err_t error = rd_kafka_metadata(kafka_.get(), 0, one, &metadata, kAskForMs);
        reports_.drain(queue_.get(), 0);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
            break;
        }
        if (reports_.complaint().refused() || monotonic_ns() > deadline_ns) {
            throw TransportError(
                with_complaint(std::string("Kafka does not answer: ") + rd_kafka_err2str(error),
                               reports_.complaint().words()));
        }
    }
    reports_.forget_complaint();
    const std::unique_ptr<const rd_kafka_metadata_t, Destroy<rd_kafka_metadata_destroy>> owner(metadata);
    std::map<std::string, const rd_kafka_metadata_topic_t*> known;
    for (int i = 0; i < metadata->topic_cnt; ++i) {
        known[metadata->topics[i].topic] = &metadata->topics[i];
    }
    for (const std::string& name : names) {
        const rd_kafka_metadata_topic_t* found = known[name];
        if (found == nullptr || found->err != RD_KAFKA_RESP_ERR_NO_ERROR || found->partition_cnt == 0) {
            throw TransportError("Kafka does not know " + name + ": " +
                                 (found == nullptr ? "no answer" : rd_kafka_err2str(found->err)));
        }
    }
    topics_ = std::move(topics);
    partitions_.clear();
    const rd_kafka_metadata_topic_t& first = *known[names.front()];
    for (int i = 0; i < first.partition_cnt; ++i) {
        partitions_.push_back(first.partitions[i].id);
    }
    std::ranges::sort(partitions_);
}

// A probe goes to every partition of the first topic, so it proves all of them; a subscriber without this
// topic has one of the other signalled topics. It is not sent while earlier probes are on their way: a broker
// that thousands of subscribers ask at once would be slower than the probes, and the next configuration would
// wait for them.
void KafkaPublisher::probe(const Header& header) {
    char message[kHeaderBytes];
    write_header(message, header);
    const bool idle = rd_kafka_outq_len(kafka_.get()) == 0;
    for (std::uint32_t topic = 0; idle && topic < signalled_; ++topic) {
        for (const std::int32_t partition : partitions_) {
            rd_kafka_produce(topics_[topic].get(), partition, RD_KAFKA_MSG_F_COPY, message, sizeof message,
                             nullptr, 0, nullptr);
        }
    }
    hurried_ = Backoff(0, kHurriedApartNs, kNeverNs);
    flush_until(monotonic_ns() + kProbeFlushNs);  // sends messages that would linger
}

std::size_t KafkaPublisher::send(const Chunk& chunk) {
    if (reports_.ledger().sent() == 0) {
        before_ = requests_.so_far();
    }
    hurried_ = Backoff(0, kHurriedApartNs, kNeverNs);
    std::size_t accepted = 0;
    while (accepted < chunk.count()) {
        // Each in its own space: librdkafka copies the messages when it has all of them.
        const std::size_t wanted =
            std::min({offered_.size(), chunk.count() - accepted, std::size_t{chunk.payload.messages()}});
        const std::int64_t now_ns = monotonic_ns();
        const std::size_t taken = topics_.size() > 1 || keys_ > 0 ? offer_each(chunk, accepted, wanted)
                                                                  : offer(chunk, accepted, wanted);
        reports_.accept(taken, now_ns);
        accepted += taken;
        if (taken < wanted) {
            reports_.drain(queue_.get(), kFullWaitMs);
            break;
        }
    }
    return accepted;
}

// As `offer`, each message to its topic, with its key if there are keys; then librdkafka chooses the
// partition.
std::size_t KafkaPublisher::offer_each(const Chunk& chunk, std::size_t from, std::size_t count) {
    PayloadBlock::Rooms rooms = chunk.rooms(from);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t sequence = chunk.first_sequence + from + i;
        const std::span<char> room = rooms.next();
        write_header(room.data(), chunk.header(from + i));
        const std::string key = keys_ > 0 ? std::to_string(chunk.traffic->key(sequence)) : "";
        const std::int32_t partition =
            keys_ > 0 ? RD_KAFKA_PARTITION_UA : partitions_[sequence % partitions_.size()];
        rd_kafka_topic_t* const topic = topics_[chunk.topic(from + i)].get();
        if (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, room.data(), room.size(),
                             keys_ > 0 ? key.data() : nullptr, key.size(), reports_.tag(sequence)) != 0) {
            const rd_kafka_resp_err_t error = rd_kafka_last_error();
            if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
                throw not_taken(topic, error);
            }
            return i;
        }
        payload_bytes_ += room.size();
    }
    return count;
}

// Offers `count` messages; returns how many librdkafka took, from the front.
std::size_t KafkaPublisher::offer(const Chunk& chunk, std::size_t from, std::size_t count) {
    std::uint64_t sequence = chunk.first_sequence + from;
    std::size_t place = sequence % partitions_.size();
    PayloadBlock::Rooms rooms = chunk.rooms(from);
    for (std::size_t i = 0; i < count; ++i, ++sequence) {
        const std::span<char> room = rooms.next();
        rd_kafka_message_t& message = offered_[i];
        message.payload = room.data();
        message.len = room.size();
        write_header(message.payload, chunk.header(from + i));
        message._private = reports_.tag(sequence);
        message.partition = partitions_[place];
        place = place + 1 == partitions_.size() ? 0 : place + 1;
    }
    // librdkafka copies a message once, into memory that it keeps for retries and frees with the report.
    const int one = partitions_.size() == 1 ? 0 : RD_KAFKA_MSG_F_PARTITION;
    const auto taken = static_cast<std::size_t>(
        rd_kafka_produce_batch(topics_.front().get(), partitions_.front(), RD_KAFKA_MSG_F_COPY | one,
                               offered_.data(), static_cast<int>(count)));
    if (taken < count) {
        // After the queue is full it takes no more of the call, so the accepted messages are the first ones.
        const rd_kafka_resp_err_t error = std::ranges::find_if(offered_, [](const auto& m) {
                                              return m.err != RD_KAFKA_RESP_ERR_NO_ERROR;
                                          })->err;
        if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            throw not_taken(topics_.front().get(), error);
        }
    }
    for (std::size_t i = 0; i < taken; ++i) {
        payload_bytes_ += offered_[i].len;
    }
    return taken;
}

void KafkaPublisher::poll() {
    if (kafka_ != nullptr) {
        reports_.drain(queue_.get(), 0);
    }
}

bool KafkaPublisher::flush(double timeout_s) {
    return kafka_ == nullptr || flush_until(monotonic_ns() + to_ns(timeout_s));
}

// rd_kafka_flush only waits until nothing is left, but the client itself has to take the reports. It is
// called because it sends messages that linger, less and less often: each call wakes librdkafka's threads,
// one for each broker. With many waiting producers these wake-ups alone would keep a machine busy.
bool KafkaPublisher::flush_until(std::int64_t deadline_ns) {
    reports_.drain(queue_.get(), 0);
    while (rd_kafka_outq_len(kafka_.get()) > 0) {
        const std::int64_t now_ns = monotonic_ns();
        if (now_ns >= deadline_ns) {
            break;
        }
        if (hurried_.due(now_ns)) {
            rd_kafka_flush(kafka_.get(), 1);
        }
        const std::int64_t left_ns = std::min(deadline_ns, hurried_.next_ns()) - now_ns;
        reports_.drain(queue_.get(), static_cast<int>(std::max<std::int64_t>(left_ns / kMillisecondNs, 1)));
    }
    return rd_kafka_outq_len(kafka_.get()) == 0;
}

std::optional<std::uint64_t> KafkaPublisher::accepted() const {
    return acknowledges_ ? std::optional(reports_.ledger().acknowledged()) : std::nullopt;
}

SystemObject KafkaPublisher::report_system() const {
    KafkaReport it;
    it.batch_bytes = batch_bytes_;
    const ProduceRequests sent = requests_.so_far() - before_;
    const AckLedger& ledger = reports_.ledger();
    const auto records = static_cast<double>(ledger.acknowledged());
    if (records > 0 && reports_.batches() > 0 && sent.count > 0) {
        it.records_per_batch = records / static_cast<double>(reports_.batches());
        it.records_per_request = records / static_cast<double>(sent.count);
        it.wire_bytes = sent.bytes;
        // Of messages that still wait, it is unknown how much has been sent.
        if (ledger.acknowledged() == ledger.sent()) {
            it.compression_ratio = static_cast<double>(payload_bytes_) / static_cast<double>(sent.bytes);
        }
    }
    return written_system(it);
}

std::optional<Delivery> KafkaPublisher::delivery() {
    if (!acknowledges_) {
        return std::nullopt;
    }
    const AckLedger& ledger = reports_.ledger();
    return Delivery{.acknowledged = ledger.acknowledged(),
                    .failed = ledger.failed(),
                    .last_ack_ns = reports_.last_ack_ns(),
                    .unacknowledged = ledger.unacknowledged(),
                    .ack_latency = reports_.latency()};
}

}  // namespace hydra
