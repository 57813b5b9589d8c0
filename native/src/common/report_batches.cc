#include "common/report_batches.h"

#include <algorithm>
#include <utility>

namespace hydra {
namespace {

constexpr std::int64_t kBatchedWithinNs = 500 * kMillisecondNs;

}  // namespace

std::vector<const ReportBatch*> ReportBatches::add(std::uint32_t epoch, BatchPart&& part,
                                                   std::int64_t now_ns) {
    std::vector<const ReportBatch*> full;
    if (!waiting_.empty() && waiting_bytes_ + part.bytes() > kBatchBytes) {
        full.push_back(flush(epoch));
    }
    if (waiting_.empty()) {
        due_ns_ = now_ns + kBatchedWithinNs;
    }
    for (const Id id : part.ids()) {
        batch_of_[id] = made_.size() + 1;
    }
    waiting_bytes_ += part.bytes();
    waiting_.push_back(std::move(part));
    if (waiting_bytes_ >= kBatchBytes) {
        full.push_back(flush(epoch));
    }
    return full;
}

const ReportBatch* ReportBatches::flush(std::uint32_t epoch) {
    due_ns_ = kNeverNs;
    if (waiting_.empty()) {
        return nullptr;
    }
    BatchColumns it = join(waiting_);
    waiting_.clear();
    waiting_bytes_ = 0;
    BatchHead head{.ids = std::move(it.ids), .epoch = epoch, .columns = std::move(it.columns)};
    return &made_.emplace_back(ReportBatch{std::move(head), std::move(it.payload)});
}

const ReportBatch* ReportBatches::of(Id client) const {
    const std::size_t number = batch_of_[client];
    return number != 0 && number <= made_.size() ? &made_[number - 1] : nullptr;
}

void ReportBatches::clear() {
    waiting_.clear();
    waiting_bytes_ = 0;
    due_ns_ = kNeverNs;
    made_.clear();
    std::ranges::fill(batch_of_, 0);
}

}  // namespace hydra
