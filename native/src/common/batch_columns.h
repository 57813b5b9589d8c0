// Subscribers' reports as binary columns: the second frame of a `batch`. docs/control-protocol.md has the
// table of columns, tests/golden/batch the bytes. Pure. (Python: hydra/wire/report_batch.py.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
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

    // Adds a column, whose items have this many bytes each.
    void add(const std::string& name, std::string_view items, std::size_t item_bytes);
};

// The sum of the latencies of several clients.
class LatencySum {
  public:
    void add(const HistogramCounts& histogram);
    // Adds the columns NAME_bounds and NAME_counts.
    void write(const std::string& name, BatchColumns& into) const;

  private:
    std::map<std::int64_t, std::int64_t> counts_;  // by index
    std::int64_t min_us_ = 0;
    std::int64_t max_us_ = 0;
};

// Collects the reports of the next batch.
class BatchBuilder {
  public:
    // The report must outlive the builder or its next take().
    void add(Id id, const SubscriberReport& report, bool cohort);

    // The sum of batch_bytes over the reports.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] bool empty() const { return rows_.empty(); }

    // Returns the batch; the builder is empty afterwards.
    BatchColumns take();

  private:
    struct Row {
        Id id;
        const SubscriberReport* report;
    };

    std::vector<Row> rows_;
    LatencySum all_;  // of the clients outside the cohort
    LatencySum cohort_;
    LatencySum hot_;  // of the hot topics, of the clients outside the cohort
    std::size_t bytes_ = 0;
};

}  // namespace hydra
