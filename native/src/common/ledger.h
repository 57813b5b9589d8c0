// A subscriber's exact account of the messages from each (publisher, epoch). Pure, time is passed in.
//
// Every message of an epoch is counted once: as the first arrival of its sequence (`reordered` if a later
// sequence arrived before it) or as a duplicate. Probes and end markers (epoch 0) are not data; messages of
// another epoch, or of a publisher that was not announced, are stale. (Python: hydra/client/ledger.py.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/batch.h"
#include "common/histogram.h"
#include "common/messages/from_controller.h"
#include "common/messages/reports.h"
#include "common/sequence_set.h"

namespace hydra {

// The sequences 0 … sent − 1 without the unacknowledged ones.
std::vector<Range> expected_ranges(const PublisherTotal& sent);

class Ledger {
  public:
    Ledger(std::uint32_t epoch, const std::vector<PublisherEndpoint>& publishers);

    // Adds a batch that was read at now_ns, and counts the latency of every message that belongs to the
    // account in `latency` (if it is not null) and in `also`. The first batch after window_end_ns freezes the
    // counts of the window. Returns how many messages belong to the account.
    std::size_t record(const Batch& batch, std::int64_t now_ns, std::int64_t window_end_ns,
                       LatencyRecorder* latency, LatencyRecorder* also = nullptr);

    // Whether every publisher's probe of this epoch or a later one was received.
    [[nodiscard]] bool proven() const { return unproven_ == 0; }

    // Whether the last expected sequence of every publisher was received: if order is kept, nothing can
    // follow.
    [[nodiscard]] bool has_last(const std::vector<PublisherTotal>& expected) const;

    // Whether every publisher's end marker of this epoch was received: if order is kept, nothing can follow.
    [[nodiscard]] bool marked(const std::vector<PublisherTotal>& expected) const;

    // The account compared with what each publisher sent, in the order of `sent`. A member of a consumer
    // group is not expected to receive everything: nothing counts as missing, and the account lists the
    // received sequences, expected or not.
    [[nodiscard]] std::vector<LedgerCounts> close(const std::vector<PublisherTotal>& sent,
                                                  bool member = false) const;

    // The expected sequences that were not received, all of them.
    [[nodiscard]] std::vector<Range> all_missing(const PublisherTotal& sent) const;

    [[nodiscard]] std::uint64_t messages() const { return messages_; }  // of the epoch, with duplicates
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::uint64_t stale() const { return stale_; }
    // The time in the newest message of the account.
    [[nodiscard]] std::uint64_t newest_ns() const { return newest_ns_; }

  private:
    struct Account {
        Id publisher;
        bool proven = false;
        bool marked = false;
        SequenceSet received{};
    };

    template <typename Accounts>
    static auto find(Accounts& accounts, Id publisher) -> decltype(accounts.data());
    void refuse(const Run& run);

    std::uint32_t epoch_;
    std::vector<Account> accounts_;  // by publisher
    std::vector<Account> at_end_;    // the accounts at the end of the window
    bool frozen_ = false;
    std::size_t unproven_;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t stale_ = 0;
    std::uint64_t newest_ns_ = 0;
};

}  // namespace hydra
