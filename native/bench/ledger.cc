// The cost of the bookkeeping for one message of a subscriber, averaged over a drained batch: the header from
// the message, the ledger, the latency; and the clock once for each batch.
//
// bench-ledger: prints ns per message of each stream, for each length of batch.
// bench-ledger STREAM PUBLISHERS LENGTH: prints that of one stream, whose messages publishers send in turn.
#include "common/ledger.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

std::vector<Stream> streams(std::size_t publishers = 1) {
    std::vector<hydra::Header> paced(kMessages);
    std::vector<hydra::Header> lossy;
    std::vector<hydra::Header> flood(kMessages);
    const auto now = static_cast<std::uint64_t>(hydra::monotonic_ns());
    for (std::size_t n = 0; n < kMessages; ++n) {
        const auto publisher = static_cast<std::uint32_t>(n % publishers);
        const std::size_t sequence = n / publishers;
        paced[n] = {1, publisher, sequence, now - 5'000'000 - n * 997 % 3'000'000};
        flood[n] = {1, publisher, sequence, now - 5'000'000 - n / 100 * 1000};
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

double nanoseconds(const std::vector<hydra::Header>& messages, std::size_t length,
                   std::size_t publishers = 1) {
    std::vector<double> rounds;
    std::vector<hydra::PublisherEndpoint> of;
    for (std::size_t publisher = 0; publisher < publishers; ++publisher) {
        of.push_back({static_cast<std::uint32_t>(publisher), ""});
    }
    for (std::size_t round = 0; round < kRounds; ++round) {
        hydra::Ledger ledger(1, of);
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

int main(int argc, char** argv) {
    if (argc == 4) {
        const auto publishers = static_cast<std::size_t>(std::atol(argv[2]));
        for (const Stream& stream : streams(publishers)) {
            if (std::strcmp(stream.name, argv[1]) == 0) {
                const auto length = static_cast<std::size_t>(std::atol(argv[3]));
                std::printf("%.3f\n", nanoseconds(stream.messages, length, publishers));
            }
        }
        return 0;
    }
    for (const Stream& stream : streams()) {
        for (const std::size_t length : {1, 10, 100, 1000}) {
            std::printf("%-14s batch %4zu %7.2f ns/message\n", stream.name, length,
                        nanoseconds(stream.messages, length));
        }
    }
}
