#include "common/ledger.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "common/bitmap.h"

namespace hydra {
namespace {

std::uint64_t size(const std::vector<Range>& ranges) {
    return std::accumulate(
        ranges.begin(), ranges.end(), std::uint64_t{0},
        [](std::uint64_t sum, const Range& range) { return sum + range.last - range.first + 1; });
}

struct Missing {
    std::size_t most_ranges = kMaxMissingRanges;
    std::uint64_t count = 0;
    std::vector<Range> ranges{};
    bool truncated = false;

    void add(std::uint64_t first, std::uint64_t last) {
        count += last - first + 1;
        if (ranges.size() < most_ranges) {
            ranges.push_back({first, last});
        } else {
            truncated = true;
        }
    }
};

// Expected sequences that were not received. Missing sequences below next and from next on are two ranges
// even if they are adjacent, in every implementation: `gaps` ends below next − 1, which was received.
Missing missing(const SequenceSet& received, const std::vector<Range>& expected,
                std::size_t most_ranges = kMaxMissingRanges) {
    Missing them{.most_ranges = most_ranges};
    const std::vector<Range> gaps = received.gaps();
    auto gap = gaps.begin();
    for (const Range& range : expected) {
        while (gap != gaps.end() && gap->last < range.first) {
            ++gap;
        }
        // A gap may also reach into the next expected range, so the iterator stays on the last gap.
        for (auto it = gap; it != gaps.end() && it->first <= range.last; ++it) {
            them.add(std::max(it->first, range.first), std::min(it->last, range.last));
        }
        if (range.last >= received.next()) {
            them.add(std::max(range.first, received.next()), range.last);
        }
    }
    return them;
}

}  // namespace

std::vector<Range> expected_ranges(const PublisherTotal& sent) {
    std::vector<Range> ranges;
    std::uint64_t first = 0;
    for (const Range& hole : sent.unacknowledged) {
        if (hole.first >= sent.sent) {
            break;
        }
        if (hole.first > first) {
            ranges.push_back({first, hole.first - 1});
        }
        first = hole.last + 1;
    }
    if (first < sent.sent) {
        ranges.push_back({first, sent.sent - 1});
    }
    return ranges;
}

Ledger::Ledger(std::uint32_t epoch, const std::vector<PublisherEndpoint>& publishers) : epoch_(epoch) {
    for (const PublisherEndpoint& it : publishers) {
        accounts_.push_back({.publisher = it.publisher});
    }
    std::ranges::sort(accounts_, {}, &Account::publisher);
    const auto twice = std::ranges::unique(accounts_, {}, &Account::publisher);
    accounts_.erase(twice.begin(), twice.end());
    unproven_ = accounts_.size();
}

// Null if the publisher was not announced.
template <typename Accounts>
auto Ledger::find(Accounts& accounts, Id publisher) -> decltype(accounts.data()) {
    // Ids of publishers mostly follow one another: a search for each message would cost more than its
    // account.
    if (const std::size_t place = accounts.empty() ? 0 : publisher - accounts.front().publisher;
        place < accounts.size() && accounts[place].publisher == publisher) {
        return &accounts[place];
    }
    const auto it = std::ranges::lower_bound(accounts, publisher, {}, &Account::publisher);
    return it != accounts.end() && it->publisher == publisher ? &*it : nullptr;
}

std::size_t Ledger::record(const Batch& batch, std::int64_t now_ns, std::int64_t window_end_ns,
                           LatencyRecorder* latency, LatencyRecorder* also) {
    if (now_ns > window_end_ns && !frozen_) {
        at_end_ = accounts_;
        frozen_ = true;
    }
    std::uint64_t counted = 0;
    Account* account = nullptr;  // of the previous stretch
    const std::span<const Run> runs = batch.runs();
    std::size_t untimed = 0;  // the first run whose latency is not counted yet
    const auto count_latency = [&](std::size_t until) {
        const std::span<const Run> accepted = runs.subspan(untimed, until - untimed);
        if (latency != nullptr) {
            latency->record(accepted, now_ns);
        }
        if (also != nullptr) {
            also->record(accepted, now_ns);
        }
    };
    // A stretch has one publisher and one epoch, and ascends without a gap. At a rate each message has its
    // own time, and is a run.
    for (std::size_t begin = 0; begin < runs.size();) {
        const Header& first = runs[begin].first;
        std::uint64_t bytes = runs[begin].bytes();
        std::size_t end = begin + 1;
        while (end < runs.size() && runs[end - 1].continued_by(runs[end].first)) {
            bytes += runs[end++].bytes();
        }
        const std::uint64_t last = runs[end - 1].last_sequence();
        if (account == nullptr || account->publisher != first.publisher) {
            account = find(accounts_, first.publisher);
        }
        if (account == nullptr || first.epoch != epoch_ || epoch_ == kProbeEpoch ||
            std::max(first.sequence, last) >= kSequenceLimit) {
            count_latency(begin);
            untimed = end;
            for (; begin < end; ++begin) {
                refuse(runs[begin]);
            }
            continue;
        }
        account->received.add(first.sequence, last);
        newest_ns_ = runs[end - 1].first.time_ns;
        bytes_ += bytes;
        counted += last - first.sequence + 1;
        begin = end;
    }
    count_latency(runs.size());
    messages_ += counted;
    return counted;
}

void Ledger::refuse(const Run& run) {
    if (run.first.epoch != kProbeEpoch) {
        stale_ += run.count;
        return;
    }
    Account* account = find(accounts_, run.first.publisher);
    if (account == nullptr) {
        return;
    }
    for (std::uint64_t i = 0; i < run.count; ++i) {
        const std::uint64_t sequence = run.first.sequence + i;
        if (sequence >= kSequenceLimit) {
            account->marked = account->marked || sequence == (kSequenceLimit | epoch_);
        } else if (!account->proven && sequence >= epoch_) {
            account->proven = true;
            --unproven_;
        }
    }
}

bool Ledger::marked(const std::vector<PublisherTotal>& expected) const {
    return !expected.empty() && std::ranges::all_of(expected, [this](const PublisherTotal& sent) {
        const Account* account = find(accounts_, sent.publisher);
        return account != nullptr && account->marked;
    });
}

bool Ledger::has_last(const std::vector<PublisherTotal>& expected) const {
    return std::ranges::all_of(expected, [this](const PublisherTotal& sent) {
        const std::vector<Range> ranges = expected_ranges(sent);
        const Account* account = find(accounts_, sent.publisher);
        return ranges.empty() || (account != nullptr && account->received.next() > ranges.back().last);
    });
}

std::vector<LedgerCounts> Ledger::close(const std::vector<PublisherTotal>& sent, bool member) const {
    static const SequenceSet nothing;  // for a publisher that was never announced
    std::vector<LedgerCounts> all;
    std::size_t room = kMaxBitmapCharacters;  // for all publishers together
    for (const PublisherTotal& one : sent) {
        const Account* account = find(accounts_, one.publisher);
        const Account* at_end = frozen_ ? find(at_end_, one.publisher) : nullptr;
        const SequenceSet& received = account != nullptr ? account->received : nothing;
        const std::vector<Range> expected = expected_ranges(one);
        Missing absent = missing(received, expected);
        LedgerCounts counts;
        counts.publisher = one.publisher;
        counts.received = size(expected) - absent.count;
        counts.in_window =
            at_end != nullptr ? size(expected) - missing(at_end->received, expected).count : counts.received;
        if (member) {
            std::optional<std::string> bits = bitmap(received);
            counts.truncated = !bits || bits->size() > room;
            if (!counts.truncated) {
                room -= bits->size();
                counts.received_bits = *std::move(bits);
            }
        } else {
            counts.missing = absent.count;
            counts.missing_ranges = std::move(absent.ranges);
            counts.truncated = absent.truncated;
        }
        counts.duplicates = received.duplicates();
        counts.reordered = received.reordered();
        counts.extra = received.count() - counts.received;
        all.push_back(std::move(counts));
    }
    return all;
}

std::vector<Range> Ledger::all_missing(const PublisherTotal& sent) const {
    const Account* account = find(accounts_, sent.publisher);
    const SequenceSet received = account != nullptr ? account->received : SequenceSet();
    return missing(received, expected_ranges(sent), SIZE_MAX).ranges;
}

}  // namespace hydra
