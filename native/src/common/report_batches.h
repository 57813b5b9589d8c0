// Subscribers' reports of an epoch as batches; each batch is made once and kept. Pure: the times are given.
// (Python: hydra/client/relayed_replies.py.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/batch_part.h"
#include "common/by_client.h"
#include "common/clock.h"

namespace hydra {

// The two frames of a batch, without the first one's `seq`.
struct ReportBatch {
    BatchHead head;
    std::string payload;
};

class ReportBatches {
  public:
    explicit ReportBatches(const Ids& ids) : batch_of_(ids) {}

    // Adds the reports of clients that have not reported; returns the batches to send now.
    std::vector<const ReportBatch*> add(std::uint32_t epoch, BatchPart&& part, std::int64_t now_ns);
    // The batch of all reports that wait; null if none waits.
    const ReportBatch* flush(std::uint32_t epoch);

    [[nodiscard]] bool holds(Id client) const { return batch_of_[client] != 0; }
    // The batch with this client's report; null if the report waits or has not arrived.
    [[nodiscard]] const ReportBatch* of(Id client) const;

    // When the first report that waits has waited long enough; kNeverNs: none waits.
    [[nodiscard]] std::int64_t due_ns() const { return due_ns_; }

    // Discards everything at the start of another epoch.
    void clear();

  private:
    std::vector<BatchPart> waiting_;
    std::size_t waiting_bytes_ = 0;
    std::int64_t due_ns_ = kNeverNs;
    std::deque<ReportBatch> made_;
    ByClient<std::size_t> batch_of_;  // index of a batch in made_, counted from 1; 0: none
};

}  // namespace hydra
