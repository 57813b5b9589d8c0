// Any bytes from the control socket, or from a client to its relay, are either a message or a ProtocolError.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "common/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const auto message = hydra::decode({reinterpret_cast<const char*>(data), size});
        // An accepted message keeps its limits.
        const hydra::Ids ids = std::visit([](const auto& it) { return it.ids; }, message);
        if (ids.size() > hydra::kMaxIds ||
            std::ranges::adjacent_find(ids, std::greater_equal()) != ids.end()) {
            std::abort();
        }
        if (const auto* configure = std::get_if<hydra::Configure>(&message)) {
            const hydra::Settings& it = configure->settings;
            if (it.burst < 1 || it.message_size < 24 || (it.rate && !(*it.rate > 0))) {
                std::abort();
            }
        }
        if (const auto* start = std::get_if<hydra::Start>(&message)) {
            const hydra::HostClock& it = start->clock;
            if (it.at_ns < 0 || it.step_ns < 0 || std::abs(it.rate_ppb) > hydra::kMaxRatePpb) {
                std::abort();
            }
        }
        if (const auto* finish = std::get_if<hydra::Finish>(&message)) {
            for (const hydra::PublisherTotal& sent : finish->publishers) {
                for (const hydra::Range& range : sent.unacknowledged) {
                    if (range.first > range.last) {
                        std::abort();
                    }
                }
            }
        }
    } catch (const hydra::ProtocolError&) {
    }
    try {
        static_cast<void>(hydra::decode_from_client({reinterpret_cast<const char*>(data), size}));
    } catch (const hydra::ProtocolError&) {
    }
    return 0;
}
