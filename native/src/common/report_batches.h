// Subscribers' reports of an epoch as batches, each made once and kept. Pure: the times are given.
// (As hydra/client/relayed_replies.py.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/batch_columns.h"
#include "common/by_client.h"
#include "common/clock.h"

namespace hydra {

// The two frames of a batch, but for the first one's `seq`.
struct ReportBatch {
    BatchHead head;
    std::string payload;
};

class ReportBatches {
  public:
    explicit ReportBatches(const Ids& ids) : batch_of_(ids) {}

    // Takes a client's report, the first of which counts; the batches that have to be sent now.
    std::vector<const ReportBatch*> add(std::uint32_t epoch, Id client, SubscriberReport&& report,
                                        bool cohort, std::int64_t now_ns);
    // The batch of what waits; null where nothing does.
    const ReportBatch* flush(std::uint32_t epoch);

    [[nodiscard]] bool holds(Id client) const { return batch_of_[client] != 0; }
    // The batch with this client's report; null where it waits or has not come.
    [[nodiscard]] const ReportBatch* of(Id client) const;

    // When what waits has waited for long enough; kNeverNs: nothing waits.
    [[nodiscard]] std::int64_t due_ns() const { return due_ns_; }

    // Forgets everything: another epoch begins.
    void clear();

  private:
    BatchBuilder waiting_;
    std::int64_t due_ns_ = kNeverNs;
    std::deque<ReportBatch> made_;
    ByClient<std::size_t> batch_of_;  // its number in made_, counted from 1; 0: none
};

}  // namespace hydra
