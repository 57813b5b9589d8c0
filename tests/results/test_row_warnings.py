"""Which warnings a row of a group has."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hydra.config.scenario import load_scenario
from hydra.events.value_formatting import MARK
from hydra.measure.column import UnlistedMessages, Values
from hydra.measure.disturbance import Disturbance, Disturbances
from hydra.measure.verdict import Causes
from hydra.report.connection_warnings import RowPartial, RowSkipped, SubscribersWithoutReport
from hydra.report.host_warnings import HostBusy, HostShared, RowDisturbed
from hydra.report.loss_warnings import (
    BacklogAtEnd,
    GroupOutcomeUnknown,
    LateMessages,
    LossInterval,
    MessagesLost,
    OutcomeUnknown,
)
from hydra.report.row_warnings import WarnedRow, merge_equal_warnings, warnings_of
from hydra.report.send_warnings import RateMissed
from hydra.report.slow_client_warnings import SlowClientsWithoutEffect
from hydra.sweep import Row
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_columns import rates
from hydra.sweep.search_warnings import StillRising

FIXED = load_scenario("zmqfixed", {})
HELD = load_scenario("nats-rate", {})
ROW: Row = {"clients": 4, "cohort_clients": None, "status": "ok", "total_tx": 1000, "rx_clients": 4}
ROW |= {"rate_held": True, "passed": True}


@pytest.mark.parametrize(
    ("figures", "alone", "in_a_group"),
    [
        ({"unknown": 5}, {OutcomeUnknown}, {OutcomeUnknown}),
        (
            {"unknown": 5, "failed_dead": 1},
            {OutcomeUnknown, SubscribersWithoutReport},
            {GroupOutcomeUnknown, SubscribersWithoutReport},
        ),
        ({"late_pct": 50.0}, {BacklogAtEnd}, {BacklogAtEnd}),
        ({"late_pct": 50.0, "passed": False, "client_loss_pct": 0.0}, {BacklogAtEnd}, {BacklogAtEnd}),
        ({"late_pct": 0.6, "passed": False, "client_loss_pct": 0.0}, {LateMessages}, {LateMessages}),
        ({"late_pct": 0.6, "passed": False, "client_loss_pct": 5.0}, {MessagesLost}, {MessagesLost}),
        ({"host_others_pct": 4.9}, set(), set()),
        ({"host_others_pct": 5.0}, {HostShared}, {HostShared}),
        ({"host_others_pct": 75.0, "host_cpu_mean_pct": 97.0}, {HostBusy}, {HostBusy}),
    ],
)
def test_the_warnings_of_a_row(figures: Row, alone: set[type], in_a_group: set[type]) -> None:
    assert {type(n) for n in warnings_of({**ROW, **figures}, FIXED)} == alone
    assert {type(n) for n in warnings_of({**ROW, **figures, "group": "readers"}, FIXED)} == in_a_group


@pytest.mark.parametrize(
    ("lost", "same"),
    [
        # By rate: which rate shows that a lower one does not help; the lowest is held against the next higher.
        ({1000: 0.3, 2000: 0.3}, {1000: 2000, 2000: 1000}),
        ({1000: 0.4, 2000: 0.3}, {1000: 2000, 2000: 1000}),
        ({1000: 0.2, 2000: 0.3}, {}),
        ({1000: 0.3, 2000: 0.31, 4000: 20.0}, {1000: 2000, 2000: 1000}),
        # A tenth and a twentieth of what is asked for arrives: no floor, but far too much.
        ({1000: 90.0, 2000: 95.0}, {}),
        ({1000: 3.0}, {}),
    ],
)
def test_a_lower_rate_is_no_advice_where_two_rates_lose_alike(lost: dict[int, float], same: dict[int, int]) -> None:
    scenario = load_scenario("zmqfixed", {"sweep.vary": {"rate": sorted(lost)}} if len(lost) > 1 else {})
    rows: list[Row] = [{**ROW, "rate": r, "requested_rate": r, "client_loss_pct": pct} for r, pct in lost.items()]
    # Other clients are another row.
    rows.append({**ROW, "clients": 9, "requested_rate": 500, "client_loss_pct": 0.3})
    for row, rate in zip(rows, lost, strict=False):
        (warning,) = warnings_of(row, scenario, rows)
        assert isinstance(warning, MessagesLost)
        assert warning.as_much_at_pps == same.get(rate)
        assert ("use a lower rate" in warning.remedy) is (rate not in same)


@pytest.mark.parametrize(
    "loss",
    [
        {"client_loss_pct": 4.0},
        {
            "client_loss_low_pct": 1.0,
            "client_loss_high_pct": 4.0,
            "client_loss_unlisted": UnlistedMessages(("publisher",)),
        },
    ],
)
def test_a_loss_names_dead_subscribers_and_advises_a_lower_rate_only_for_others(loss: Row) -> None:
    lost, ended = warnings_of({**ROW, **loss, "failed_dead": 1, "died_by": "SIGKILL"}, FIXED)
    assert "subscribers that sent no report (1 died (SIGKILL))" in lost.text
    assert lost.remedy == ended.remedy
    lost, _ = warnings_of(
        {**ROW, **loss, "client_loss_unlisted": UnlistedMessages(("publisher",)), "failed_dead": 1, "failed_lossy": 2},
        FIXED,
    )
    assert lost.remedy.endswith("for the other subscribers, use a lower rate")


@pytest.mark.parametrize("client", ["native", "pyzmq"])
def test_native_clients_are_no_advice_for_native_clients(client: str) -> None:
    (warning,) = warnings_of({**ROW, "generator_limited": True}, load_scenario("zmqfixed", {"client": client}))
    assert ("native" in warning.remedy) is (client == "pyzmq")


def test_a_host_that_others_keep_busy_is_theirs_to_free() -> None:
    others, both, own = HostBusy(97.0, 75.0), HostBusy(97.0, 39.0), HostBusy(97.0, 12.0)
    assert (
        others.text == "a host had no CPU left: 97 % of the time of all cores was used, about 75 % by other processes"
    )
    assert both.remedy == f"{others.remedy}; if it stays busy, {own.remedy}"
    assert "the other processes" in others.remedy
    assert own.remedy == HostBusy(97.0).remedy == "use fewer clients on this host, or more hosts"


def test_other_processes_have_one_figure_in_a_row() -> None:
    named = Disturbances((Disturbance("h", 77.0, (("python3", 77.0),)),))
    row: Row = {**ROW, "host_cpu_mean_pct": 99.0, "host_others_pct": 50.0, "disturbed": named}
    texts = [str(warning) for warning in warnings_of(row, FIXED)]
    assert [text.split(":")[0] for text in texts] == ["a host had no CPU left", "disturbed"]
    assert "50 %" not in "".join(texts)
    assert "".join(texts).count("77 %") == 2  # in all, and by the only process
    assert "".join(texts).count("end the other processes") == 1


def test_a_row_has_one_warning_of_a_kind() -> None:
    row: Row = {**ROW, "repeats": 3, "a": 1.0, "a_n": 2, "b": 1.0, "b_n": 1}
    row |= {"loss_generator_limited": True, "slow_generator_limited": True}
    found = [warning.kind for warning in warnings_of(row, FIXED)]
    assert sorted(found) == ["fewer_figures", "generator_limited"]


def limited(*stages: str, **more: Any) -> Row:
    return {"verdict": Causes(stages), **more}


EVENTS, LIMIT = "the events of the scenario caused this", "the setting receive_rate limits the subscribers"


@pytest.mark.parametrize(
    ("more", "remedy"),
    [
        (limited("server"), "use a lower rate"),
        (limited(), "use a lower rate"),
        (limited("planned events"), EVENTS),
        ({"verdict": Values((Causes(("requested rate",)), Causes(("planned events",))))}, EVENTS),
        (limited("planned events", "receive_rate"), f"{EVENTS}.*; {LIMIT}"),
        (limited("clients not let in"), "raise the server's limits of connections"),
        (limited("lost connections"), "see in the server's log why it ended the connections"),
        (limited("server", refused_reason="message_too_large"), "send smaller messages"),
        (limited("server", refused_reason="quota"), "raise the quota"),
        (limited("server", refused_reason="not_authorized"), "allow the user to write there"),
        (limited("subscriber hosts", refused_reason="quota"), "use a lower rate"),
        (limited("host CPU", local_limit="host CPU"), "limited or delayed by host CPU: use fewer clients"),
        (
            limited("host CPU", local_limit="host CPU", host_others_pct=40.0),
            "limited or delayed by host CPU: end the other processes.*do not run$",
        ),
        (
            limited("host CPU", local_limit="host CPU", host_others_pct=6.0),
            "limited or delayed by host CPU: end the other processes.*; otherwise use fewer clients",
        ),
        (
            limited("subscriber hosts", local_limit="subscriber hosts"),
            "limited or delayed by subscriber hosts: use fewer clients on this host",
        ),
        (
            limited("clients not let in", local_limit="subscriber hosts", connect_local_why="ENFILE"),
            "on the subscribers' host, raise the limit of open files .*fs.file-max.$",
        ),
        (
            limited("clients not let in", connect_refused=2, connect_local_why="ENFILE"),
            "raise the server's limits of connections",
        ),
        (limited("publisher", local_limit="publisher"), "limited or delayed by publisher: use a lower rate, or a"),
    ],
)
@pytest.mark.parametrize(
    ("figures", "kind"),
    [
        ({"client_loss_pct": 4.0}, MessagesLost),
        ({"late_pct": 50.0}, BacklogAtEnd),
        ({"late_pct": 0.6, "passed": False, "client_loss_pct": 0.0}, LateMessages),
        ({"rate_held": False, "rate_sent": False, "publishers_slow": 1, "requested_rate": 9.0}, RateMissed),
    ],
)
def test_the_remedy_is_about_what_limited_the_row(figures: Row, kind: type, more: Row, remedy: str) -> None:
    (found,) = (w for w in warnings_of({**ROW, **figures, **more}, FIXED) if isinstance(w, kind))
    assert re.match(remedy, found.remedy)
    planned = remedy not in ("use a lower rate",) and not remedy.startswith("limited or delayed by publisher")
    assert ("lower rate" in found.remedy) is not planned


@pytest.mark.parametrize(
    ("row", "remedy"),
    [
        ({}, "use a lower rate"),
        ({"group": "readers"}, "use a lower rate, or more members of the group"),
        (
            {"topics": 8, "copies_expected": 400},
            "use a lower rate, or fewer topics for each subscriber (topics_per_client)",
        ),
    ],
)
def test_more_subscribers_are_advised_only_where_they_divide_the_messages(row: Row, remedy: str) -> None:
    (warning,) = warnings_of({**ROW, "late_pct": 50.0, **row}, FIXED)
    assert warning.remedy == remedy


@pytest.mark.parametrize(("received", "requests"), [(0, True), (1, False)])
def test_a_group_in_which_nothing_arrives_asks_whether_the_server_has_shared_subscriptions(
    received: int, requests: bool
) -> None:
    row: Row = {**ROW, "group": "all", "client_loss_pct": 100.0, "total_rx": received}
    (warning,) = warnings_of(row, load_scenario("mqtt-fixed", {"settings.shared": True}))
    assert ("has the server shared subscriptions?" in warning.remedy) is requests


def test_a_row_that_was_skipped_in_the_middle_of_its_repeats_keeps_the_warnings_of_its_figures() -> None:
    bare: Row = {"clients": 4, "status": "skipped", "reason": "by hand"}
    for row, kinds in (({**ROW, **bare, "late_pct": 50.0}, [RowSkipped, BacklogAtEnd]), (bare, [RowSkipped])):
        assert [type(warning) for warning in warnings_of(row, FIXED)] == kinds


@pytest.mark.parametrize(
    ("row", "messages"), [({}, 2000), ({"group": "readers"}, 500), ({"topics": 8, "copies_expected": 400}, 200)]
)
def test_what_was_still_to_come_is_counted_once_for_a_group_and_by_topic(row: Row, messages: int) -> None:
    (warning,) = warnings_of({**ROW, "late_pct": 50.0, **row}, FIXED)
    assert isinstance(warning, BacklogAtEnd)
    assert warning.messages == messages


def test_each_warning_stands_once_gravest_first_with_what_would_change_it() -> None:
    busy, lost = HostBusy(99.0), [MessagesLost(2.0), MessagesLost(3.0)]
    remedy = "use a lower rate"
    about = [
        WarnedRow("1 subscriber", [busy, lost[0]], clean=True),
        WarnedRow("2 subscribers", [busy]),
        WarnedRow("3 subscribers", [lost[1], busy]),
    ]
    assert merge_equal_warnings(about) == [
        ("1 subscriber; 3 subscribers", f"1 subscriber: {lost[0].text}; 3 subscribers: {lost[1].text}; {remedy}", MARK),
        ("1 subscriber; 2 subscribers; 3 subscribers", f"{busy.text}; {busy.remedy}", ""),
    ]
    rising = [StillRising("max_rate"), StillRising("nodrop")]
    text = f"{rising[0].text}; {rising[1].text}; raise --start-rate"
    assert merge_equal_warnings([WarnedRow("1 subscriber", rising, True)]) == [("1 subscriber", text, "")]


@pytest.mark.parametrize(
    ("rows", "of", "names"),
    [(4, 4, "row 0; row 1; row 2; row 3"), (5, 5, "all 5 rows"), (5, 6, "row 0; row 1; row 2; 2 more rows")],
)
def test_of_many_rows_a_few_are_named(rows: int, of: int, names: str) -> None:
    about = [WarnedRow(f"row {n}", [RowPartial()] if n < rows else []) for n in range(of)]
    assert [each.rows for each in merge_equal_warnings(about)] == [names]


SEARCHED: Row = {"clients": 4, "status": "ok", "slow_cohort_felt": False, "max_rate_with_drop_pps": 20_000.0}


def test_slow_clients_that_were_not_felt_have_what_it_would_have_taken() -> None:
    scenario = load_scenario("zmqrate", {"published": True, "sweep.duration_s": 10.0})
    assert isinstance(scenario.sweep, SearchSweep)
    column = rates(scenario.sweep.search)["slow"]
    (warning,) = warnings_of({**SEARCHED, column: 12_000.0}, scenario)
    # They read half of 20,000/s, and the marks are 1,000 at both ends.
    assert isinstance(warning, SlowClientsWithoutEffect)
    assert (warning.sent_pps, warning.read_pps, warning.duration_s, warning.queue) == (12_000.0, 10_000.0, 10.0, 2000)
    assert warning.kernel == pytest.approx(10 * 2**20 / 26)
    assert "grows by 20,000 messages in a step" in warning.text
    (warning,) = warnings_of(
        {**SEARCHED, column: 12_000.0}, load_scenario("zmqrate", {"published": True, "settings.sndhwm": 0})
    )
    assert "set a limit" in str(warning)
    (warning,) = warnings_of(SEARCHED, scenario)
    assert str(warning).endswith("use longer steps, or a lower sweep.search.slow_share")


@pytest.mark.parametrize(
    ("known", "unlisted", "remedies"),
    [
        ({"client_loss_unlisted": UnlistedMessages(("publisher",))}, ["publisher"], ["use a lower rate"]),
        (
            {"client_loss_unlisted": UnlistedMessages(("publisher", "members"))},
            ["publisher", "members"],
            ["shorter steps", "use a lower rate"],
        ),
        ({"group": "g", "client_loss_unlisted": UnlistedMessages(("members",))}, ["members"], ["shorter steps"]),
    ],
    ids=["publisher", "both", "members"],
)
def test_a_loss_within_bounds_blames_who_could_not_list_messages(
    known: Row, unlisted: list[str], remedies: list[str]
) -> None:
    (warning,) = warnings_of({**ROW, "client_loss_low_pct": 1.0, "client_loss_high_pct": 2.0, **known}, FIXED)
    assert isinstance(warning, LossInterval)
    assert warning.unlisted == unlisted
    assert ("members of the consumer group" in warning.text) is ("members" in unlisted)
    assert [each in warning.remedy for each in ("shorter steps", "use a lower rate")] == [
        any(each in r for r in remedies) for each in ("shorter steps", "use a lower rate")
    ]


def test_what_several_rows_share_stands_once() -> None:
    named = [Disturbances((Disturbance("h", pct, (("python", pct),)),)) for pct in (17.0, 28.0)]
    about = [
        WarnedRow(f"{clients} subscribers", [RowDisturbed(each.hosts), HostBusy(100.0, others, named=True)], clean=True)
        for clients, each, others in zip((10, 30), named, (None, 28.0), strict=True)
    ]
    disturbed, busy = merge_equal_warnings(about)
    assert disturbed.rows == busy.rows == "10, 30 subscribers"
    assert disturbed.text == (
        "disturbed: on h, processes outside the run used … 10 subscribers: 17 % of the CPU (python 17 %); "
        "30 subscribers: 28 % of the CPU (python 28 %); end the other processes on that host, or measure when they do "
        "not run"
    )
    assert busy.text.count("a host had no CPU left") == 1


def test_a_limit_of_a_full_host_is_one_warning() -> None:
    row: Row = {
        "clients": 100,
        "status": "ok",
        "loss_answer": "at_least",
        "max_rate_below_0_5pct_drop_pps": 8000.0,
        "loss_not_held_pps": 10_000.0,
        "loss_not_held_cause": "late",
        "loss_not_held_amount": 8.63,
        "loss_generator_limited": True,
        "max_rate_generator_limited": True,
        "host_cpu_mean_pct": 100.0,
        "host_others_pct": 28.0,
    }
    held, *shared = warnings_of(row, HELD)
    assert held.kind == "held_at_least"
    assert held.text.startswith("what the system alone can do is unknown, because ")
    assert held.remedy == "run the clients on hosts of their own"
    assert shared == []
    only_clients = warnings_of({**row, "host_cpu_mean_pct": 50.0, "host_others_pct": 0.0}, HELD)
    assert [warning.kind for warning in only_clients] == ["held_at_least", "generator_limited"]
    assert only_clients[1].text.startswith("full speed: ")
    assert "fewer clients" not in only_clients[1].remedy
