// The cost of the bookkeeping for one message of a subscriber, averaged over a drained batch: the header from
// the message, the ledger, the latency; and the clock once for each batch. Prints ns per message for each
// length of batch.
#include "common/ledger.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/batch.h"
#include "common/clock.h"
#include "common/histogram.h"

namespace {

constexpr std::size_t kMessages = 2'000'000;
constexpr std::size_t kRounds = 7;

struct Stream {
    const char* name;
    std::vector<hydra::Header> messages;
};

std::vector<Stream> streams() {
    std::vector<hydra::Header> paced(kMessages);
    std::vector<hydra::Header> lossy;
    std::vector<hydra::Header> flood(kMessages);
    const auto now = static_cast<std::uint64_t>(hydra::monotonic_ns());
    for (std::size_t n = 0; n < kMessages; ++n) {
        paced[n] = {1, 0, n, now - 5'000'000 - n * 997 % 3'000'000};
        flood[n] = {1, 0, n, now - 5'000'000 - n / 100 * 1000};
        if (n % 10 != 3) {
            lossy.push_back(paced[n]);
        }
    }
    // Four partitions, each a few thousand messages at a time: almost no message arrives in order.
    std::vector<hydra::Header> partitions;
    constexpr std::size_t block = 20'000;
    for (std::size_t begin = 0; begin < kMessages; begin += block) {
        for (std::size_t partition = 0; partition < 4; ++partition) {
            for (std::size_t n = begin + partition; n < begin + block; n += 4) {
                partitions.push_back(paced[n]);
            }
        }
    }
    return {{"max", std::move(flood)},
            {"paced", std::move(paced)},
            {"lossy", std::move(lossy)},
            {"4 partitions", std::move(partitions)}};
}

double nanoseconds(const std::vector<hydra::Header>& messages, std::size_t length) {
    std::vector<double> rounds;
    for (std::size_t round = 0; round < kRounds; ++round) {
        hydra::Ledger ledger(1, {{0, ""}});
        hydra::LatencyRecorder latency;
        hydra::Batch batch;
        const std::int64_t begin = hydra::monotonic_ns();
        for (std::size_t i = 0; i < messages.size();) {
            batch.reset(length);
            while (!batch.full() && i < messages.size()) {
                batch.add(&messages[i++], hydra::kHeaderBytes);
            }
            ledger.record(batch, hydra::monotonic_ns(), hydra::kNeverNs, &latency);
        }
        rounds.push_back(static_cast<double>(hydra::monotonic_ns() - begin) /
                         static_cast<double>(messages.size()));
    }
    std::ranges::sort(rounds);
    return rounds[kRounds / 2];
}

}  // namespace

int main() {
    for (const Stream& stream : streams()) {
        for (const std::size_t length : {1, 10, 100, 1000}) {
            std::printf("%-14s batch %4zu %7.2f ns/message\n", stream.name, length,
                        nanoseconds(stream.messages, length));
        }
    }
}
