#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <vector>

#include "common/clock.h"
#include "common/host_counters.h"
#include "common/kernel_files.h"

using namespace hydra;

namespace {

// A child that works until it is killed.
struct Busy {
    pid_t pid = fork();

    Busy() {
        if (pid == 0) {
            alarm(60);
            while (true) {
                static_cast<void>(getppid());
            }
        }
    }
    ~Busy() {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
};

}  // namespace

TEST_CASE("what cannot be read is empty") {
    CHECK(text_of("/proc/self/comm") == "hydra-tests\n");
    CHECK(text_of("/proc/self/missing").empty());
    CHECK(text_of("/proc/self/task").empty());  // opens, but cannot be read
}

TEST_CASE("a host has cores, memory and counters that rise") {
    HostSampler reader;
    const HostCounters before = reader.read();
    REQUIRE_FALSE(before.cores.empty());
    CHECK(before.cores.size() <= static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_CONF)));
    CHECK(before.memory_total > before.memory_available);
    CHECK(before.memory_available > 0);
    CHECK_FALSE(before.interfaces.contains("lo"));
    const std::int64_t deadline_ns = monotonic_ns() + 10 * kSecondNs;
    HostCounters after = reader.read();
    while (after.cores[0].total_s <= before.cores[0].total_s && monotonic_ns() < deadline_ns) {
        after = reader.read();
    }
    CHECK(after.cores[0].total_s > before.cores[0].total_s);
    CHECK(after.cores[0].busy_s >= before.cores[0].busy_s);
    CHECK(after.context_switches >= before.context_switches);
    CHECK(after.tcp.segments_out >= before.tcp.segments_out);
    for (const auto& [resource, waited_us] : before.pressure_us) {
        CHECK(after.pressure_us.at(resource) >= waited_us);
    }
}

TEST_CASE("the busiest threads are those of the process and of all that descend from it") {
    const Busy child;
    ThreadSampler reader(getpid(), 100);
    CHECK(reader.busiest().empty());  // nothing to compare with
    const std::int64_t deadline_ns = monotonic_ns() + 10 * kSecondNs;
    std::vector<BusyThread> threads;
    const auto seen = [&] {
        return std::ranges::any_of(
            threads, [&](const auto& it) { return it.pid == static_cast<std::uint32_t>(child.pid); });
    };
    while (!seen() && monotonic_ns() < deadline_ns) {
        sleep_until_ns(monotonic_ns() + 50 * kMillisecondNs);
        threads = reader.busiest();
    }
    REQUIRE(seen());
    for (const BusyThread& it : threads) {
        CHECK(it.cpu_pct > 0);
        CHECK_FALSE(it.name.empty());
    }
}

TEST_CASE("a process that has ended has no threads") {
    pid_t ended = 0;
    {
        const Busy child;
        ended = child.pid;
    }
    ThreadSampler reader(ended, 100);
    CHECK(reader.busiest().empty());
    CHECK(reader.busiest().empty());
}

TEST_CASE("a look reads the beginnings of the kernel's files, and of no others") {
    const Look look{.number = 3,
                    .patterns = {"/proc/self/com*", "/proc/sys/kernel/osrelease", "/proc/self/missing",
                                 "/etc/hostname", "/proc/../etc/hostname"},
                    .most_bytes = 5};
    const KernelTexts answer = kernel_texts(look, {7}, 11);
    CHECK(answer.number == 3);
    CHECK(answer.time_ns == 11);
    CHECK(answer.complete);
    CHECK(answer.texts.at("/proc/self/comm") == "hydra");
    CHECK(answer.texts.contains("/proc/sys/kernel/osrelease"));
    CHECK(std::ranges::none_of(answer.texts,
                               [](const auto& it) { return it.first.find("etc") != std::string::npos; }));
}
