#include <doctest/doctest.h>

#include <filesystem>
#include <initializer_list>

#include "common/clock.h"

using namespace hydra;

namespace {

constexpr std::int64_t kBootedNs = 100 * kSecondNs;
constexpr std::int64_t kUnixNs = 1'767'225'600 * kSecondNs;
constexpr std::int64_t kDayNs = 86'400 * kSecondNs;

}  // namespace

TEST_CASE("what is due at a time is waited for until that time has come, and no longer") {
    for (const std::int64_t rate_ppb :
         {-kMaxRatePpb, std::int64_t{-999'983}, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1},
          std::int64_t{200'003}, kMaxRatePpb}) {
        for (const std::int64_t passed_ns :
             {-kDayNs - 7, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, std::int64_t{99},
              std::int64_t{100}, kSecondNs - 1, 3 * kSecondNs, 30 * kDayNs + 123'456'789}) {
            CAPTURE(rate_ppb);
            CAPTURE(passed_ns);
            const StepClock it({.at_ns = kBootedNs, .step_ns = kUnixNs, .rate_ppb = rate_ppb});
            const std::int64_t due_ns = kUnixNs + passed_ns;
            const std::int64_t until = it.monotonic_of(due_ns);
            CHECK(it.at_ns(until) >= due_ns);
            CHECK(it.at_ns(until - 1) < due_ns);
        }
    }
}

TEST_CASE("a host has ids of its boot and its namespaces") {
    CHECK(boot_id().size() == 36);
    CHECK(time_namespace().starts_with("time:[") == std::filesystem::exists("/proc/self/ns/time"));
    CHECK(network_namespace().starts_with("net:[") == std::filesystem::exists("/proc/self/ns/net"));
}
