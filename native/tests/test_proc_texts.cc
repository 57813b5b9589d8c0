#include <doctest/doctest.h>

#include "common/proc_texts.h"

using namespace hydra;

namespace {

constexpr double kTicks = 100;

}  // namespace

TEST_CASE("cores and context switches") {
    // user nice system idle iowait irq softirq steal guest guest_nice
    const CpuFigures it = cpu_figures(
        "cpu  300 0 0 1000 0 0 0 50 0 0\n"
        "cpu0 100 20 30 400 50 6 4 40 90 10\n"
        "cpu12 0 0 0 18446744073 0 0 0 0 0 0\n"
        "intr 135080850 0 0\n"
        "ctxt 9223372036854775807\n"
        "cpux\n"
        "procs_running 3",
        kTicks);
    REQUIRE(it.cores.size() == 3);
    // The user's time includes the guest's time.
    CHECK(it.cores[0] == CoreTimes{1.6, 0.4, 6.5});
    CHECK(it.cores[1] == CoreTimes{0, 0, 184'467'440.73});
    CHECK(it.cores[2] == CoreTimes{});
    CHECK(it.context_switches == INT64_MAX);
    CHECK(cpu_figures("", kTicks).cores.empty());
    // Kernels before 2.6.11 had no such column.
    CHECK(cpu_figures("cpu0 100 0 100 200 0 0 0", kTicks).cores.at(0) == CoreTimes{2, 0, 4});
}

TEST_CASE("pressure is how long some waited") {
    CHECK(pressure_us("some avg10=56.92 avg60=45.61 avg300=32.99 total=29309827877\n"
                      "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n") == 29'309'827'877);
    CHECK(pressure_us("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n") == 0);
    CHECK_FALSE(pressure_us("full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"));
    CHECK_FALSE(pressure_us("some"));
    CHECK_FALSE(pressure_us(""));
}

TEST_CASE("memory") {
    const MemoryFigures it = memory_figures(
        "MemTotal:       24684084 kB\nMemFree:        14737412 kB\nMemAvailable:   21840572 kB\n");
    CHECK(it.total == 24'684'084ULL * 1024);
    CHECK(it.available == 21'840'572ULL * 1024);
    CHECK(memory_figures("\n").total == 0);
}

TEST_CASE("interfaces without the loopback") {
    const auto them = interface_counts(
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo\n"
        "    lo: 373990503713 196626583    0    0    0     0          0         0 373990503713 1 0 0 0 0 0 "
        "0\n"
        "  eth0:10540747527  304470    1    2    3     4          5         6 22149549  184318    7    8    "
        "9 "
        "     10       11          12\n"
        "veth-a: 1\n");
    CHECK(them.size() == 2);
    CHECK(them.at("eth0") == InterfaceCounts{10'540'747'527, 22'149'549, 2, 8, std::nullopt});
    CHECK(them.at("veth-a") == InterfaceCounts{.rx_bytes = 1});
    CHECK(interface_counts("").empty());
}

TEST_CASE("TCP's counters are found by their names") {
    CHECK(tcp_counts(
              "Ip: Forwarding OutSegs\nIp: 1 999\n"
              "Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs InErrs\nTcp: 1 -1 5 1000000 19 0\n"
              "Udp: InDatagrams OutSegs\nUdp: 5 6\n",
              "TcpExt: SyncookiesSent TCPFastRetrans TCPSlowStartRetrans TCPLossProbes\nTcpExt: 3 10 2 7\n"
              "IpExt: InNoRoutes\nIpExt: 4\n") == TcpCounts{1'000'000, 12});
    CHECK(tcp_counts("Tcp: OutSegs\nTcp: 7\n", "TcpExt: TCPFastRetrans\n") == TcpCounts{7, 0});
    CHECK(tcp_counts("", "") == TcpCounts{});
}

TEST_CASE("a thread may have any name") {
    const std::string rest = " S 1 2 3 4 5 6 7 8 9 10 250 75 0 0 20 0 3 0";
    auto it = task_figures("4711 (ZMQbg/IO/0)" + rest, kTicks);
    REQUIRE(it);
    CHECK(it->name == "ZMQbg/IO/0");
    CHECK(it->cpu_s == 3.25);
    it = task_figures("4711 (a) S (1 2\n)" + rest, kTicks);
    REQUIRE(it);
    CHECK(it->name == "a) S (1 2\n");
    CHECK(it->cpu_s == 3.25);
    for (const char* none : {"", "4711", "4711 (a", ")(", "4711 (a) S 1 2 3"}) {
        CAPTURE(none);
        CHECK_FALSE(task_figures(none, kTicks));
    }
}
