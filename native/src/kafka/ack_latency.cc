#include "kafka/ack_latency.h"

#include <algorithm>

namespace hydra {

void AckLatency::begin() {
    chunks_.clear();
    sent_ = 0;
    recorder_.reset();
}

void AckLatency::handed_over(std::uint64_t count, std::int64_t now_ns) {
    if (count > 0) {
        sent_ += count;
        chunks_.push_back({.end = sent_, .open = count, .time_ns = now_ns});
    }
}

void AckLatency::answered(std::uint64_t first, std::uint64_t count, std::uint64_t stride, std::int64_t now_ns,
                          bool arrived) {
    auto it = std::ranges::upper_bound(chunks_, first, {}, &Chunk::end);
    while (count > 0 && it != chunks_.end()) {
        if (first >= it->end) {
            ++it;
            continue;
        }
        const std::uint64_t here = std::min(count, (it->end - first - 1) / stride + 1);
        it->open -= std::min(here, it->open);
        if (arrived) {
            recorder_.record_us((now_ns - it->time_ns) / 1000, here);
        }
        first += here * stride;
        count -= here;
    }
    while (!chunks_.empty() && chunks_.front().open == 0) {
        chunks_.pop_front();
    }
}

}  // namespace hydra
