// Subscribers' reports as binary columns: the second frame of a `batch`. docs/control-protocol.md has the
// table of columns, tests/golden/batch the bytes. Pure. (Python: hydra/wire/report_batch.py.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/messages/from_client.h"

namespace hydra {

// Most bytes in a batch of several clients, without the sums of their histograms.
inline constexpr std::size_t kBatchBytes = 1024 * 1024;

// The bytes of a report in a batch, a few too many.
std::size_t batch_bytes(const SubscriberReport& report);

struct BatchColumns {
    Ids ids;
    std::vector<ColumnCount> columns;
    std::string payload;
};

// Collects the reports of the next batch.
class BatchBuilder {
  public:
    void add(Id id, SubscriberReport report, bool cohort);

    // The sum of batch_bytes over the reports.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] bool empty() const { return rows_.empty(); }

    // Returns the batch; the builder is empty afterwards.
    BatchColumns take();
    void clear();

  private:
    // The sum of the latencies of several clients, by index.
    struct Sum {
        std::map<std::int64_t, std::int64_t> counts;
        std::int64_t min_us = 0;
        std::int64_t max_us = 0;

        void add(const HistogramCounts& histogram);
    };

    struct Row {
        Id id;
        SubscriberReport report;
    };

    std::vector<Row> rows_;
    Sum all_;  // of the clients outside the cohort
    Sum cohort_;
    Sum hot_;  // of the hot topics, of the clients outside the cohort
    std::size_t bytes_ = 0;
};

}  // namespace hydra
