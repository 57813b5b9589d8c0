"""The columns of a step, from reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import pytest

from hydra import model
from hydra.measure.column import Column, ReportColumn, SystemColumns
from hydra.measure.disturbance import Disturbance, Disturbances
from hydra.measure.observation import Observation
from hydra.measure.verdict import NOT_LIMITED
from hydra.model import Cohort, Figure, Histogram, HostSample, PublisherReport, cell_of
from hydra.wire.report_validation import MAX_ABSENT
from hydra.wire.subscriber_table import EMPTY, SubscriberTable
from tests.measure.observations import observed, reporting
from tests.measure.reports import SECOND, START, published, received
from tests.suite.figures import figures

OWN = ReportColumn("disconnects", "", "how often", role="subscriber", key="gone")


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ((3, 5), {"sum": 8, "max": 5, "common": None}),
        ((4, 4), {"sum": 8, "max": 4, "common": 4}),
        ((None, 7), {"sum": 7, "max": 7, "common": 7}),  # who does not name it does not count
        ((0, None), {"sum": 0, "max": 0, "common": 0}),
        ((None, None), {"sum": None, "max": None, "common": None}),
    ],
)
@pytest.mark.parametrize("fold", ["sum", "max", "common"])
def test_a_column_of_the_systems_own_is_folded_over_those_who_report_it(
    text: tuple[int | None, ...], folded: Mapping[str, Figure], fold: Literal["sum", "max", "common"]
) -> None:
    reported = (None if value is None else {"gone": value, "other": 1} for value in text)
    table = reporting(*(received(system=its) for its in reported))
    own = SystemColumns(reported=[replace(OWN, fold=fold)])
    f = figures(replace(observed(), subscriber_reports=table, columns=own))
    names = list(f)
    assert (f["disconnects"], names[names.index("blocked_s") + 1]) == (folded[fold], "disconnects")


def test_a_publishers_column_is_of_the_publishers_reports_and_the_batch_column_has_the_systems_name() -> None:
    own = [replace(OWN, role="publisher", key="size")]
    reports = {0: replace(published(1000), system={"size": 2400})}
    columns = SystemColumns(Column("in_flight", "messages", "sent before an answer"), own)
    f = figures(replace(observed(), publisher_reports=reports, columns=columns, batch=20))
    assert f["disconnects"] == 2400
    assert f["in_flight"] == 20


def test_a_good_step() -> None:
    f = figures(observed())
    expected = {
        "avg_tx_rate_pps": 100.0, "avg_rx_rate_pps": 100.0, "tx_span_rate_pps": 99.9,
        "rx_span_rate_pps": 100.0, "client_loss_pct": 0.0, "failed_clients": 0,
        "total_tx": 1000, "total_rx": 1000, "aggregate_pps": 200.0, "rx_clients": 2, "latency_p99_us": 50,
        "latency_max_us": 50, "fairness_jain": 1.0, "rate_held": True, "stale": 2, "passed": True,
        "verdict": NOT_LIMITED,
    }  # fmt: skip
    assert {k: f[k] for k in expected} == expected


def test_all_rates_of_a_row_are_of_one_window_whatever_came_after_it() -> None:
    table = reporting(received(900, late=300, seconds=15.0), received(1000, seconds=5.0))
    o = replace(observed(), subscriber_reports=table)
    f = figures(o)
    assert (f["aggregate_pps"], f["avg_rx_rate_pps"], f["rx_span_rate_pps"]) == (160.0, 80.0, (800 / 15 + 180) / 2)
    assert f["rx_mb_s"] == pytest.approx(1600 * 24 / 10 / 1e6)
    # What servers acknowledge after the window was not sent in it.
    acknowledged = published(1000, seconds=12.5, ack_latency=Histogram([5, 1000], 5, 5))
    late = [published(1000, seconds=12.5), acknowledged]
    assert [figures(replace(o, publisher_reports={0: p}))["avg_tx_rate_pps"] for p in late] == [100, 80]


def test_a_dead_and_a_silent_subscriber_are_in_the_loss_and_in_the_rate() -> None:
    f = figures(replace(observed(), subscribers={1, 2, 3, 4}, dead={3}))
    assert (f["client_loss_pct"], f["total_rx"], f["rx_clients"], f["avg_rx_rate_pps"]) == (50.0, 500, 2, 50.0)
    assert (f["failed_clients"], f["failed_dead"], f["failed_silent"], f["failed_lossy"]) == (2, 1, 1, 0)
    assert (f["rx_p1"], f["rx_p99"], f["passed"]) == (0, 1000, False)
    assert "died_by" not in f


def test_how_subscribers_died_is_counted_of_those_outside_the_cohort() -> None:
    o = replace(observed(), subscribers={*range(1, 8)}, dead={3, 4, 5}, cohort={5})
    deaths = {"exit code 3": {5}, "SIGKILL": {3, 4, 9}}
    assert figures(replace(o, deaths=deaths))["died_by"] == "SIGKILL"
    assert (
        figures(replace(o, deaths={**deaths, "SIGKILL": {3}, "group lost": {4}}))["died_by"]
        == "1 × SIGKILL, 1 × group lost"
    )


@pytest.mark.parametrize(
    "o",
    [
        replace(observed(), publisher_reports={0: published(0)}, subscriber_reports=EMPTY),
        replace(observed(), publisher_reports={}, subscriber_reports=EMPTY),
        replace(observed(), publishers={0, 9}),
    ],
)
def test_what_cannot_be_known_is_no_number(o: Observation) -> None:
    f = figures(o)
    names = ["avg_rx_rate_pps", "client_loss_pct", "total_rx", "aggregate_pps", "passed", "fairness_jain", "verdict"]
    assert [f[n] for n in names] == [None] * len(names)


def test_no_subscriber_entered() -> None:
    table = reporting(received(5, batches=1), received(0, batches=0, seconds=0))
    f = figures(replace(observed(), subscriber_reports=table))
    assert (f["avg_rx_rate_pps"], f["rx_span_rate_pps"], f["rx_clients"]) == (0.25, None, 0)


CLOCKS = {
    "a": model.AgentClock(0, 0, 0, 0, same_host=True, jumps=0),
    "b": model.AgentClock(5, 0, 1_500, 2_000, same_host=False, jumps=0),
    "c": model.AgentClock(7, 0, 9_000, 9_000, same_host=False, jumps=0),
}


def test_latencies_between_hosts_have_the_bound_of_both_clocks_and_those_below_zero_are_counted() -> None:
    early = replace(received(1000), latency=Histogram([-31, 4, -2, 1, 50, 995], -30, 50))
    table, apart = (reporting(early, received(1000), cohort=cohort) for cohort in ((), {2}))
    agents = {0: "b", 1: "a", 2: "c"}
    o = replace(observed(), subscriber_reports=table, clocks=CLOCKS, agents=agents)
    elsewhere = replace(o, agents=dict.fromkeys(agents, "c"), clocks={})
    for step, bound_us in ((o, 10.5), (replace(o, cohort={2}, subscriber_reports=apart), 1.5), (elsewhere, 0)):
        f = figures(step)
        assert (f["latency_bound_us"], f["negative_latencies"]) == (bound_us, 5)


def test_without_a_clock_or_a_latency_there_is_no_bound() -> None:
    o = replace(observed(), agents={0: "a", 1: "b", 2: "elsewhere"}, clocks=CLOCKS)
    assert (figures(o)["latency_bound_us"], figures(o)["negative_latencies"]) == (None, 0)
    # Without latencies no clock is needed.
    assert figures(replace(o, subscriber_reports=reporting(received(1000))))["latency_bound_us"] == 1.5
    f = figures(replace(o, subscriber_reports=reporting(received(0), received(0))))
    assert (f["latency_bound_us"], f["negative_latencies"]) == (None, None)


def test_a_host_whose_clock_jumped_is_named_once_for_all_its_agents() -> None:
    clocks = {**CLOCKS, **dict.fromkeys(["c", "d"], replace(CLOCKS["c"], jumps=2)), "e": replace(CLOCKS["c"], jumps=1)}
    o = replace(observed(), clocks=clocks, machine_of={"a": "here", "b": "far", "c": "big", "d": "big"})
    found = Disturbances((Disturbance("big", clock_jumps=2), Disturbance("e", clock_jumps=1)))
    assert figures(o)["disturbed"] == found


def sampled(
    busy_pct: float = 10, steal_pct: float = 0, again: int = 0, sent_mbit_s: int = 0, speed_mbit: int | None = None
) -> list[HostSample]:
    """A host over the window: its only core, the segments in 1000 that it sent once more, what its interface sent."""

    def counters(k: int) -> model.HostCounters:
        cores = [model.CoreTimes(k * busy_pct / 100, k * steal_pct / 100, k)]
        interfaces = {"eth0": model.InterfaceCounts(0, k * sent_mbit_s * 125_000, 0, k, speed_mbit)}
        return model.HostCounters(cores, {}, 100, 90 - k, interfaces, model.TcpCounts((1000 - again) * k, again * k), 0)

    return [HostSample(START + k * SECOND, counters(k)) for k in (0, 5, 10)]


FULL_LINK = sampled(sent_mbit_s=950, speed_mbit=1000)
UNSEEN = "undecided: subscriber hosts or high-water mark"
"""Without the CPU use of subscribers."""


def on_hosts(**hosts: list[HostSample]) -> Observation:
    """The publisher is on the controller's host, its subscribers are behind, on two agents of another one."""
    held_up = reporting(*[received(500, lost=500)] * 2)
    o = replace(observed(), agents={0: "a", 1: "b", 2: "c"}, subscriber_reports=held_up)
    return replace(o, hosts=hosts, host_of={"a": "here", "b": "b", "c": "b"}, direct=True)


def test_the_hosts_columns_are_of_the_host_that_fared_worst() -> None:
    f = figures(on_hosts(here=sampled(20, 7, 5, 90, 100), b=sampled(60, 2, 4, 900, 10_000)))
    expected = {
        "host_cpu_mean_pct": 62, "host_cpu_busiest_core_pct": 62, "host_steal_pct": 7, "network_share_pct": 90,
        "host_memory_available_min_bytes": 80, "tcp_retransmitted_pct": 0.5, "host_drops": 20, "host_others_pct": 60,
    }  # fmt: skip
    assert {k: f[k] for k in expected} == pytest.approx(expected)


def samples(*cpu_pct: float, group: str = "s") -> list[model.ThreadSample]:
    """Threads of a server that used so much all through the window."""
    threads = [model.BusyThread(1, "t", pct, tid=n) for n, pct in enumerate(cpu_pct)]
    return [model.ThreadSample(START + k * SECOND, group, threads, "server") for k in (0, 5, 10)]


@pytest.mark.parametrize(
    ("threads", "servers", "others_pct"),
    [
        ({}, {}, 60),
        ({"b": samples(30, 5)}, {}, 25),
        ({"here": samples(30, 5)}, {}, 25),  # no group: the controller watches it
        ({"here": samples(*[1.5] * 10)}, {}, None),  # there may be an eleventh
        ({"here": samples(*[1.5] * 10)}, {"s": {"cpu_seconds_per_s": 0.35}}, 25),
        (
            {"here": samples(*[1.5] * 10), "b": samples(1)},
            {"s": {"cpu_seconds_per_s": 0.35}},
            None,
        ),  # of which of the two?
        ({}, {"elsewhere": {"cpu_seconds_per_s": 0.35}}, 60),
    ],
)
def test_what_our_own_servers_use_is_no_work_of_others(
    threads: dict[str, list[model.ThreadSample]], servers: dict[str, dict[str, float]], others_pct: float | None
) -> None:
    o = on_hosts(here=sampled(60))
    o = replace(o, host_of=dict.fromkeys("abc", "here"), threads=threads, servers=servers)
    assert figures(o)["host_others_pct"] == (others_pct if others_pct is None else pytest.approx(others_pct))
    silent = replace(o, subscriber_reports=reporting(received(500)))
    assert figures(silent)["host_others_pct"] is None


def test_what_was_not_sampled_is_no_figure() -> None:
    f = figures(on_hosts(here=sampled()[:1]))
    names = ("host_cpu_mean_pct", "host_steal_pct", "network_share_pct", "tcp_retransmitted_pct", "host_drops")
    assert [f[name] for name in names] == [None] * 5
    assert str(f["verdict"]) == UNSEEN
    assert figures(on_hosts(here=sampled(sent_mbit_s=900)))["network_share_pct"] is None


@pytest.mark.parametrize(
    ("hosts", "verdict"),
    [
        ({"here": sampled(99), "b": sampled(50)}, "high-water mark"),
        ({"here": sampled(99)}, UNSEEN),
        ({"here": sampled(50), "b": sampled(99)}, "subscriber hosts"),
        ({"here": sampled(50), "b": sampled(50, 45)}, "subscriber hosts"),
        ({"b": sampled(99)[:2]}, "subscriber hosts"),  # its relay died half-way
        ({"here": FULL_LINK, "b": sampled(99)}, "undecided: network or subscriber hosts"),
        ({"here": sampled(sent_mbit_s=850, speed_mbit=1000), "b": sampled()}, "high-water mark"),
        ({"here": sampled(again=10)}, UNSEEN.replace("subscriber", "network or subscriber", 1)),
        ({"here": sampled(again=9), "b": sampled(again=9)}, "high-water mark"),
    ],
)
def test_the_verdict_looks_at_the_hosts_of_the_clients(hosts: dict[str, list[HostSample]], verdict: str) -> None:
    assert str(figures(on_hosts(**hosts))["verdict"]) == verdict


@pytest.mark.parametrize(("direct", "verdict"), [(True, "high-water mark"), (False, "network")])
def test_messages_that_stay_on_their_host_are_not_limited_by_a_network(direct: bool, verdict: str) -> None:
    o = on_hosts(here=sampled(again=500, sent_mbit_s=1000, speed_mbit=1000))
    f = figures(replace(o, direct=direct, host_of=dict.fromkeys("abc", "here")))
    assert (str(f["verdict"]), f["tcp_retransmitted_pct"], f["network_share_pct"]) == (verdict, 50, 100)


def test_a_controllers_host_without_clients_is_no_evidence() -> None:
    o = on_hosts(elsewhere=sampled(99, again=500), b=sampled(10))
    f = figures(replace(o, host_of=dict.fromkeys("abc", "b")))
    assert (str(f["verdict"]), f["host_cpu_mean_pct"], f["tcp_retransmitted_pct"]) == ("high-water mark", 99, 0)


@pytest.mark.parametrize(
    ("used_s", "arrived", "expected"), [(3.0, 500, True), (1.0, 500, None), (3.0, 1000, False), (1.0, 1000, False)]
)
def test_clients_that_used_up_a_host_limited_a_rate_that_did_not_hold(
    used_s: float, arrived: int, expected: bool | None
) -> None:
    """The host has one core, of which clients used 6 of 10 s, or 2; half of the messages are lost, or none."""
    usage = model.ProcessUsage(used_s - 0.5, 0.5, 1000)
    report = replace(received(arrived, lost=1000 - arrived), usage=usage)
    o = replace(on_hosts(b=sampled(99)), subscriber_reports=reporting(report, report))
    assert figures(o)["generator_limited"] is expected


def test_at_rate_max_latency_counts_from_the_send_and_no_rate_is_held() -> None:
    f = figures(observed("max"))
    assert (f["rate_held"], f["latency_from_send_p50_us"], "latency_p50_us" in f) == (None, 50, False)


@pytest.mark.parametrize(
    ("report", "held"),
    [(published(1000), True), (published(989), True), (published(980), False), (published(stopped_early="x"), False)],
)
def test_a_rate_is_held_when_99_percent_of_what_was_due_was_sent(report: PublisherReport, held: bool) -> None:
    assert figures(replace(observed(), publisher_reports={0: report}))["rate_held"] is held


def test_pass_and_figures_look_only_at_clients_outside_the_cohort() -> None:
    o = observed()
    slow = received(400, lost=600, late=100, latency_us=999, felt=False, absent=[(0, 500_000_000)])
    o = replace(o, plan=replace(o.plan, cohort=Cohort("slow", 0.3, 50.0, 1)), subscribers={1, 2, 3}, cohort={3})
    f = figures(replace(o, subscriber_reports=reporting(received(1000), received(1000), slow, cohort={3})))
    assert (f["passed"], f["client_loss_pct"], f["failed_clients"], f["total_rx"]) == (True, 0.0, 0, 1000)
    assert (f["cohort_loss_pct"], f["cohort_felt"], f["absent_s"], f["cohort_clients"]) == (60.0, False, 0.5, 1)
    assert (f["latency_max_us"], f["aggregate_pps"], f["late"]) == (50, 230.0, 100)


def test_absences_that_may_have_been_joined_are_no_figure() -> None:
    o = observed()
    for count, seconds in ((MAX_ABSENT - 1, 1.023), (MAX_ABSENT, None)):
        absent = [(2_000_000 * n, 2_000_000 * n + 1_000_000) for n in range(count)]
        away = replace(received(1000), absent=absent, reconnects=2000)
        plan = replace(o.plan, cohort=Cohort("reconnecting", 0.3, 50.0, 1))
        table = reporting(away, received(1000), cohort={1})
        f = figures(replace(o, plan=plan, cohort={1}, subscriber_reports=table))
        assert (f["absent_s"], f["reconnects"]) == (seconds, 2000)


RISING: list[int | None] = [1000 + i % 3 + 50_000 * i for i in range(20)]
"""50 ms more in each half second: 10 % of the rate."""
FLAT: list[int | None] = [1000 + i % 3 for i in range(20)]


@pytest.mark.parametrize(
    ("lags", "behind", "growth_pct"),
    [
        ((FLAT, FLAT, FLAT), 0, 0.0),
        ((FLAT, FLAT, RISING), 1, 10 / 3),
        ((RISING,) * 3, 3, 10.0),
        (([], [], []), None, None),
    ],
)
def test_a_steady_rate_asks_that_no_backlog_grows(
    lags: tuple[list[int | None], ...], behind: int | None, growth_pct: float | None
) -> None:
    table = reporting(*(received(1000, lag_bins_us=bins) for bins in lags))
    o = replace(observed(), subscribers={1, 2, 3}, subscriber_reports=table)
    f = figures(replace(o, steady=True))
    assert (f["falling_behind"], f["passed"]) == (behind, not behind)
    assert f["backlog_growth_pct"] == (None if growth_pct is None else pytest.approx(growth_pct, rel=0.01))
    assert figures(o)["passed"] is True


def test_in_the_window_late_undrained_lost_and_unknown_stand_apart() -> None:
    table = reporting(
        received(900, late=300, lost=100, undrained=60, drain="deadline"),
        received(950, late=50, lost=50, drain="quiet"),
        received(0, batches=0, lost=1000, undrained=1000, drain="deadline"),
    )
    o = replace(observed(), subscribers={1, 2, 3, 4}, subscriber_reports=table, dead={4}, last_words={4: 250})
    f = figures(o)
    counts = {"in_window": 1750, "late": 350, "undrained": 1060, "unknown": 40, "lost": 800}
    assert {name: f[name] for name in counts} == counts
    assert sum(counts.values()) == 4 * 1000
    parts = ("client_loss_pct", "late_pct", "undrained_pct", "unknown_pct", "loss_at_stop_pct")
    assert [f[name] for name in parts] == [20.0, 8.75, 26.5, 1.0, 56.25]
    assert (f["failed_lossy"], f["failed_dead"], f["total_rx"], f["aggregate_pps"]) == (1, 1, 525, 175)


@pytest.mark.parametrize(
    ("got", "extra", "low", "high", "passed"),
    [
        # Of 1,050 sent, 50 were not acknowledged and stand in a joined range with 8 (or 100) that were; 5 may be lost.
        (900, 0, 10.0, 10.0, False),
        (900, 95, 0.5, 5.5, None),
        (900, 150, 0.0, 0.0, None),  # all of it came, but how much of it too late is unknown
        (992, 0, 0.8, 0.8, False),
        (992, 8, 0.0, 0.8, None),
        (992, 55, 0.0, 0.3, True),
        (992, 58, 0.0, 0.0, True),
    ],
)
def test_where_ranges_were_joined_the_loss_is_an_interval(
    got: int, extra: int, low: float, high: float, passed: bool | None
) -> None:
    joined = published(1050, 1000, unacknowledged=[(got, 1049)], unacknowledged_joined=True)
    table = reporting(*[received(got, extra=extra)] * 2)
    # The 50 that were not acknowledged count as lost, too: of 1,050, the target allows these and 5 more.
    target = 55.01 / 1050
    f = figures(replace(observed(), publisher_reports={0: joined}, subscriber_reports=table, loss_target=target))
    assert (f["client_loss_pct"], f["client_loss_low_pct"], f["client_loss_high_pct"]) == (None, low, high)
    assert (f["passed"], f["total_tx"], f["total_rx"], f["lost"]) == (passed, 1000, None, None)
    assert "client_loss_low_pct" not in figures(observed())


@pytest.mark.parametrize(
    ("table", "dead", "held", "verdict"),
    [
        # A fixed rate asks for no loss at all; a dead or silent subscriber is no queue that was full.
        (reporting(received(1000)), {2}, 1000, "requested rate"),
        (reporting(received(1000)), set(), 1000, "requested rate"),
        (reporting(received(900)), {2}, 900, "undecided: publisher or high-water mark"),
        (reporting(received(900, lost=100)), {2}, 1000, UNSEEN),
        (EMPTY, {1, 2}, 1000, None),
    ],
)
def test_the_dead_are_no_evidence_of_a_queue(
    table: SubscriberTable, dead: set[int], held: int, verdict: str | None
) -> None:
    o = replace(observed(), publisher_reports={0: published(held)}, subscriber_reports=table, dead=dead)
    f = figures(replace(o, loss_target=0, direct=True))
    assert (f["passed"], cell_of(f["verdict"])) == (False, verdict)
