"""A rate is held, and a row clean, if the system accepted the messages: what the libraries took does not suffice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hydra.measure.acceptance import acceptance
from hydra.measure.connections import ConnectFacts
from hydra.measure.share_interval import copies_of
from hydra.measure.step_result import StepFigures
from hydra.model import Cohort, Histogram, PublisherReport, Rate, TimeSeriesFacts, TimeSeriesInterval
from hydra.sweep.cleanness import flaws
from tests.measure.observations import observed, reporting
from tests.measure.reports import published, received
from tests.suite.figures import figures

HISTOGRAM = Histogram([50, 900], 50, 50)


def account_of(sent: int, accepted: int, failed: int = 0, **unaccepted: Any) -> PublisherReport:
    """The account of a publisher of a system with acknowledgements."""
    holes = [(accepted, sent - 1)] if accepted < sent else []
    system = {"acceptance": unaccepted} if unaccepted else None
    return published(sent, accepted, failed=failed, unacknowledged=holes, system=system)


def of_step(report: PublisherReport, rate: Rate = 100.0, **more: Any) -> StepFigures:
    """The figures of a step of 10 s whose two subscribers received everything that was accepted."""
    table = reporting(*[received(report.acknowledged)] * 2)
    return figures(replace(observed(rate), publisher_reports={0: report}, subscriber_reports=table, **more))


@pytest.mark.parametrize(
    ("report", "held", "sent", "passed", "verdict"),
    [
        (account_of(1000, 1000), True, True, True, "requested rate"),
        # Up to 1 % of the messages due may not be sent, and up to the loss target of 0.5 % may not be accepted.
        (account_of(990, 990), True, True, True, "requested rate"),
        (account_of(980, 980), False, False, True, "undecided: publisher or server"),
        (account_of(1000, 995, 5, reason="quota", text="too many", messages=5), True, True, True, "requested rate"),
        (account_of(1000, 996, 4, reason="quota", text="too many", messages=4), True, True, True, "requested rate"),
        (account_of(1000, 992, 8, reason="quota", text="too many", messages=8), False, True, False, "server"),
        (
            account_of(1000, 206, 794, reason="message_too_large", text="too large", messages=794),
            False,
            True,
            False,
            "server",
        ),
        (account_of(1000, 0, 1000, reason="timeout", text="timed out", messages=1000), False, True, False, "server"),
        (account_of(1000, 600), False, True, False, "server"),  # no answer
        (account_of(500, 500), False, False, True, "undecided: publisher or server"),
    ],
)
def test_a_rate_is_held_and_passes_if_the_system_accepted_the_messages(
    report: PublisherReport, held: bool, sent: bool, passed: bool, verdict: str
) -> None:
    f = of_step(report)
    assert (f["rate_held"], f["rate_sent"], f["passed"], str(f["verdict"])) == (held, sent, passed, verdict)
    # A row of a search, whose shortfall has the same messages, agrees.
    assert (flaws(f) == ()) is (held and passed)
    if (shortfall_pct := f.passing.shortfall_pct) is not None:
        assert (shortfall_pct <= 0.5) is (held and passed)
    assert not any("unknown" in flaw for flaw in flaws(f))


def test_the_reason_is_that_of_the_publisher_with_most_rejected_messages() -> None:
    few = account_of(1000, 999, 1, reason="quota", text="too many", messages=1)
    many = account_of(1000, 900, 100, reason="stream_full", text="maximum messages exceeded", messages=100)
    o = replace(observed(), publishers={0, 1}, publisher_reports={0: few, 1: many})
    f = figures(o)
    assert (f["refused_reason"], f["refused_text"]) == ("stream_full", "maximum messages exceeded")
    assert (f["tx_failed"], f["tx_unanswered"]) == (101, 0)
    assert f["unaccepted_pct"] == pytest.approx(5.05)
    assert "not accepted (stream_full)" in "; ".join(flaws({**f, "status": "ok"}))


def test_the_answer_about_a_loss_counts_what_was_not_accepted() -> None:
    facts = TimeSeriesFacts(0, 10.0, 1, copies=1.0)
    series = [TimeSeriesInterval(second, due=100) for second in range(10)]
    lost = {"client_loss_pct": 0.0, "undrained_pct": 0.0, "unknown_pct": 0.0}
    assert copies_of(StepFigures.of({**lost, "unaccepted_pct": 0.0}), HISTOGRAM, facts, series).missing == (0, 0)
    assert copies_of(StepFigures.of({**lost, "unaccepted_pct": 10.0}), HISTOGRAM, facts, series).missing == (100, 100)
    nothing = copies_of(StepFigures.of({"unaccepted_pct": 100.0}), Histogram(), facts, series)
    assert (nothing.expected, nothing.missing) == (1000, (1000, 1000))


@pytest.mark.parametrize(
    ("report", "progress", "flaw"),
    [
        (account_of(9000, 9000, stalled_us=990_000), True, ""),  # below a tenth of the 10 s
        (account_of(9000, 9000, stalled_us=1_000_000), False, "nothing accepted of a publisher for 1 s"),
        (account_of(9000, 8999, 1, reason="quota", messages=1), True, ""),
        (account_of(9000, 8999), False, "1 message never acknowledged"),
    ],
)
def test_at_max_a_row_is_clean_if_every_publisher_makes_progress(
    report: PublisherReport, progress: bool, flaw: str
) -> None:
    f = of_step(report, "max")
    assert f["tx_progress"] is progress
    assert "; ".join(flaws({**f, "status": "ok"})) == flaw
    # A step that stops its server, or slows its subscribers, explains it.
    for explained in ({"events": True}, {"connecting": ConnectFacts()}):
        assert of_step(report, "max", **explained)["tx_progress"] is None
    assert of_step(report)["tx_progress"] is None


def test_a_lost_connection_that_nothing_asked_for_makes_a_row_not_clean() -> None:
    report = account_of(1000, 1000, lost_connections=1, lost_why="Packet too large")
    f = of_step(report)
    assert flaws({**f, "status": "ok"}) == ("1 publisher lost the connection (Packet too large)",)
    for explained in ({"events": True}, {"connecting": ConnectFacts()}):
        f = of_step(report, **explained)
        assert (f["publishers_disconnected"], flaws({**f, "status": "ok"})) == (None, ())
    # A cohort is one of subscribers.
    plan = replace(observed().plan, cohort=Cohort("reconnecting", 0.5, 1.0))
    f = of_step(report, plan=plan)
    assert (f["publishers_disconnected"], f["subscribers_disconnected"]) == (1, None)


@pytest.mark.parametrize(
    ("systems", "flaw"),
    [
        ([{"lost_connections": 1}, {"disconnects": 0}], ("1 subscriber lost the connection",)),
        (
            [{"lost_connections": 1, "lost_why": "no pings"}, {"disconnects": 2, "lost_why": "EOF"}],
            ("2 subscribers lost the connection (no pings)",),
        ),
        ([{"disconnects": 1}, {"disconnects": 1, "lost_why": "EOF"}], ("2 subscribers lost the connection (EOF)",)),
        ([{}, {"disconnects": 1, "lost_why": 7}], ("1 subscriber lost the connection",)),  # of another client
        ([{}, {"disconnects": 0, "lost_why": "EOF"}], ()),
    ],
)
def test_a_lost_connection_of_a_subscriber_is_named_with_its_reason(
    systems: list[dict[str, Any]], flaw: tuple[str, ...]
) -> None:
    lost = reporting(*(received(system=each) for each in systems))
    f = figures(replace(observed(), subscriber_reports=lost))
    assert flaws({**f, "status": "ok"}) == flaw


def test_the_reason_is_that_of_whichever_publisher_has_one() -> None:
    reports = [
        account_of(1000, 1000),
        account_of(1000, 1000),
        account_of(1000, 1000, reason="message_too_large", text="too large"),
    ]
    assert acceptance(reports, 100.0, 10.0).reason == "message_too_large"


def test_another_clients_object_that_is_not_understood_is_none() -> None:
    assert acceptance([published(1000, system={"acceptance": {"messages": "many"}})], 100.0, 10.0).reason == ""
