#include "zmtp/subscriber.h"

#include <algorithm>

#include "common/system_fields.h"
#include "zmtp/settings.h"

namespace hydra {
namespace {

constexpr int kMostReads = 100;  // most reads in one call

}  // namespace

ConnectQueue& ZmtpProcess::queue_of(const std::string& endpoint) {
    const auto known = queues.find(endpoint);
    return known != queues.end() ? known->second
                                 : queues.try_emplace(endpoint, endpoint, tend_at_ns).first->second;
}

void ZmtpSubscriber::configure(const Configure& command) {
    static_cast<void>(read_system<ZmtpSettings>(command.system));
    if (command.settings.receive_rate ||
        std::ranges::any_of(command.spells, [](const Impairment& impairment) {
            return impairment.kind == ImpairmentKind::slow;
        })) {
        throw TransportError(
            "a zmtp subscriber has no queue, so a zmtp subscriber cannot be a slow reader; take another "
            "implementation");
    }
    const auto same = [](const std::unique_ptr<ZmtpConnection>& connection,
                         const PublisherEndpoint& publisher) {
        return connection->to().endpoint() == publisher.endpoint;
    };
    if (left_ || chosen_ != topics_ || !std::ranges::equal(connections_, command.publishers, same)) {
        connections_.clear();
        topics_ = chosen_;
        for (const PublisherEndpoint& publisher : command.publishers) {
            connections_.push_back(std::make_unique<ZmtpConnection>(process_.queue_of(publisher.endpoint),
                                                                    topics_, process_.rcvbuf_bytes));
        }
        connections_.shrink_to_fit();
        connect();
    }
    for (const auto& connection : connections_) {
        connection->forget_losses();
    }
}

// Throws the first error; a repeated command tries again.
void ZmtpSubscriber::connect() {
    left_ = false;
    try {
        for (const auto& connection : connections_) {
            connection->open();
        }
    } catch (const TransportError&) {
        connections_.clear();
        throw;
    }
}

void ZmtpSubscriber::reconnect() {
    leave();
    connect();
}

void ZmtpSubscriber::leave() {
    left_ = true;
    for (const auto& connection : connections_) {
        connection->close();
    }
}

void ZmtpSubscriber::watch(Waiter& waiter, std::uint64_t token) {
    for (const auto& connection : connections_) {
        connection->watch(&waiter, token);
    }
}

void ZmtpSubscriber::unwatch() {
    for (const auto& connection : connections_) {
        connection->watch(nullptr, 0);
    }
}

void ZmtpSubscriber::ended() {
    for (const auto& connection : connections_) {
        connection->ended();
    }
}

bool ZmtpSubscriber::receive(Batch& batch) {
    bool more = false;
    std::size_t looked = 0;
    for (; looked < connections_.size() && !batch.full(); ++looked) {
        ZmtpConnection& connection = *connections_[next_];
        next_ = next_ + 1 < connections_.size() ? next_ + 1 : 0;
        more = connection.read(batch, process_.buffer) || more;
    }
    return more || looked < connections_.size();
}

std::int64_t ZmtpSubscriber::tend(std::int64_t now_ns, bool between_steps) {
    static_cast<void>(between_steps);
    if (now_ns >= process_.tend_at_ns) {
        process_.tend_at_ns = kNeverNs;  // the loop tends all connections
    }
    std::int64_t due_ns = kNeverNs;
    for (const auto& connection : connections_) {
        connection->tend(now_ns);
        due_ns = std::min(due_ns, connection->due_ns());
    }
    return due_ns;
}

// A publisher may ping between two steps, and disconnects if it has no answer.
void ZmtpSubscriber::arrived_between_steps() {
    for (int reads = 0; reads < kMostReads; ++reads) {
        process_.dropped.reset(kBatchLimit);
        if (!receive(process_.dropped)) {
            return;
        }
    }
}

SystemObject ZmtpSubscriber::report_system() const {
    ZmtpReport report;
    for (const auto& connection : connections_) {
        report.lost += connection->lost();
        report.refused += connection->refused();
    }
    return report.lost == 0 ? SystemObject() : written_system(report);
}

}  // namespace hydra
