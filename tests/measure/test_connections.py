"""The table of connecting: who was let in, when, and who came back; a client that is missing is never left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hydra.measure.connection_columns import ComingBack, Connecting, Disconnections, is_above_all
from hydra.measure.connections import ConnectFacts, Connections, ranked, reports_of
from hydra.model import Figure
from hydra.model.system_reports import ConnectionReport

MS = 1_000_000
AT = 10**18


def let_in(number: int, ready_us: int, *, apart_ms: int = 0, **more: Any) -> ConnectionReport:
    return ConnectionReport(due_ns=AT + number * apart_ms * MS, attempts=1, lag_us=10, ready_us=ready_us, **more)


def connection_figures(
    facts: ConnectFacts | None, reports: Sequence[ConnectionReport], asked: int
) -> dict[str, Figure]:
    step: Any = SimpleNamespace(connections=Connections(facts, reports, asked))
    parts = [part.of(step) for part in (Connecting, Disconnections, ComingBack) if part.is_in(step)]
    return dict(cell for part in parts for cell in part.cells())


@pytest.mark.parametrize(
    ("values", "requests", "percent", "figure"),
    [
        ([3, 1, 2], 3, 50.0, 2),
        ([3, 1, 2], 3, 100.0, 3),
        ([3, 1, 2], 4, 50.0, 2),
        ([3, 1, 2], 4, 100.0, None),
        ([3, 1, 2], 6, 50.0, 3),
        ([3, 1, 2], 7, 50.0, None),
        ([], 1, 50.0, None),
    ],
)
def test_a_missing_value_ranks_above_all_others(
    values: list[int], requests: int, percent: float, figure: int | None
) -> None:
    assert ranked(values, requests, percent) == figure


def test_of_twenty_clients_two_were_never_let_in() -> None:
    reports = [let_in(n, 1000 * (n + 1)) for n in range(18)]
    failed = ConnectionReport(due_ns=AT, attempts=5, refused=2, timed_out=1, lag_us=10, refused_why="full")
    reports += [replace(failed, local={"EMFILE": 1, "ENOMEM": 1}), replace(failed, local={"EMFILE": 2})]
    figures = connection_figures(ConnectFacts(rate="max", others=2, server_cpu_s=0.5), reports, 20)
    assert (figures["connected_clients"], figures["never_connected"]) == (18, 2)
    assert (figures["ready_p50_ms"], figures["ready_p99_ms"], figures["ready_max_ms"]) == (10.0, None, None)
    assert (figures["connect_attempts"], figures["connect_refused"], figures["connect_timed_out"]) == (28, 4, 2)
    assert (figures["connect_local"], figures["connect_local_why"]) == (4, "EMFILE")
    assert figures["connect_refused_why"] == "full"
    assert (figures["connected_p50_ms"], figures["connect_tcp_p50_ms"]) == (
        None,
        None,
    )  # the library does not report them
    assert (figures["other_connections"], figures["connect_server_cpu_s"]) == (2, 0.5)


def test_dead_and_silent_clients_were_not_let_in() -> None:
    figures = connection_figures(ConnectFacts(rate=10.0), [let_in(0, 7000)], 3)
    assert (figures["never_connected"], figures["ready_p50_ms"], figures["ready_max_ms"]) == (2, None, None)


def test_the_rate_achieved_is_that_of_readiness() -> None:
    reports = [let_in(n, 20_000, apart_ms=10) for n in range(11)]
    assert connection_figures(ConnectFacts(rate=100.0), reports, 11)["connect_rate_achieved"] == pytest.approx(
        10 / 0.12
    )


def test_phases_are_those_of_the_clients_let_in() -> None:
    reports = [let_in(n, 5000, tcp_us=1000 * n, login_us=2000) for n in (1, 2, 3)] + [ConnectionReport(due_ns=AT)]
    figures = connection_figures(ConnectFacts(rate="max"), reports, 4)
    assert [figures[f"connect_tcp_{p}_ms"] for p in ("p50", "p99", "max")] == [2.0, 3.0, 3.0]
    assert (figures["connect_login_p50_ms"], figures["connect_tls_p50_ms"]) == (2.0, None)


def test_of_twenty_clients_two_never_came_back() -> None:
    back = [ConnectionReport(disconnections=[(AT + 3 * MS, AT + (n + 10) * MS, 2)]) for n in range(18)]
    ended = [ConnectionReport(disconnections=[(AT + 3 * MS, 0, 5)])] * 2
    figures = connection_figures(ConnectFacts(down_ns=(AT,)), [*back, *ended], 20)
    assert (figures["disconnections"], figures["never_back"], figures["back_attempts"]) == (20, 2, 2.3)
    # From the end of the server, not from the moment at which a client noticed.
    assert (figures["back_p50_ms"], figures["back_p99_ms"], figures["back_max_ms"]) == (19.0, None, None)
    assert "connect_rate" not in figures


@pytest.mark.parametrize(
    ("down", "requests", "never", "p50_ms", "max_ms"),
    [
        ((AT,), 3, 0, 6.0, 7.0),
        ((AT,), 4, 1, 6.0, None),
        ((AT,), 7, 4, None, None),
        # Without the event it is not known whether a dead subscriber was disconnected before it died.
        ((), 4, 0, 3.0, 4.0),
    ],
)
def test_after_an_end_of_the_server_dead_and_silent_clients_are_not_back(
    down: tuple[int, ...], requests: int, never: int, p50_ms: float | None, max_ms: float | None
) -> None:
    reports = [ConnectionReport(disconnections=[(AT + 3 * MS, AT + n * MS, 1)]) for n in (5, 6, 7)]
    figures = connection_figures(ConnectFacts(down_ns=down), reports, requests)
    assert (figures["disconnections"], figures["never_back"]) == (3, never)
    assert (figures["back_p50_ms"], figures["back_max_ms"]) == (p50_ms, max_ms)
    assert is_above_all(figures, "back_max_ms") == (max_ms is None)


def test_what_the_library_does_not_reveal_is_unknown() -> None:
    figures = connection_figures(ConnectFacts(down_ns=(AT,), losses_known=False), [ConnectionReport()], 2)
    assert not {"disconnections", "back_p50_ms", "never_back"} & figures.keys()


def test_without_an_event_a_disconnection_counts_from_its_notice() -> None:
    report = ConnectionReport(disconnections=[(AT, AT + 5 * MS, 1), (AT + 9 * MS, AT + 10 * MS, 1)])
    figures = connection_figures(ConnectFacts(), [report], 1)
    assert (figures["back_p50_ms"], figures["back_max_ms"], figures["never_back"]) == (1.0, 5.0, 0)


def test_an_end_of_the_server_causes_only_the_first_loss_after_it() -> None:
    lost = [(AT + MS, AT + 5 * MS, 1), (AT + 50 * MS, AT + 52 * MS, 1), (AT + 91 * MS, AT + 93 * MS, 1)]
    figures = connection_figures(ConnectFacts(down_ns=(AT, AT + 90 * MS)), [ConnectionReport(disconnections=lost)], 1)
    assert (figures["back_p50_ms"], figures["back_max_ms"]) == (3.0, 5.0)


def test_a_step_that_does_not_measure_it_has_columns_only_of_disconnections() -> None:
    assert connection_figures(None, [let_in(0, 1)], 1) == {}
    lost = [ConnectionReport(disconnections=[(5 * MS, 8 * MS, 2)]), ConnectionReport(disconnections=[(5 * MS, 0, 4)])]
    figures = connection_figures(None, lost, 30)
    assert (figures["disconnections"], figures["never_back"], figures["back_attempts"]) == (2, 1, 3)
    assert (figures["back_p50_ms"], figures["back_max_ms"]) == (3.0, None)
    assert "connect_rate" not in figures


def test_an_invalid_report_is_that_of_a_client_that_was_not_let_in() -> None:
    messages: list[Any] = [
        {"connection": {"due_ns": 5, "ready_us": 7}},
        {"connection": {"due_ns": "x"}},
        {"other": 1},
        None,
    ]
    assert reports_of(messages) == [ConnectionReport(due_ns=5, ready_us=7)]
