"""The rates of a number of messages: n messages span n − 1 intervals, and a few at full rate have no rate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.measure.observation import Observation
from hydra.model import Rate, Settings, StepPlan
from hydra.run.step import window_end_ns
from hydra.wire.messages import Progress
from tests.measure.observations import observed, reporting
from tests.measure.reports import SECOND, START, published, received
from tests.suite.figures import figures

RATES = ("avg_tx_rate_pps", "avg_rx_rate_pps", "aggregate_pps", "tx_mb_s", "rx_mb_s", "tx_span_rate_pps")


def sent(count: int, rate: Rate, seconds: float, window_s: float) -> Observation:
    """A step in which all messages were sent and received in this many seconds of its window."""
    settings = Settings(rate=rate, messages=max(count, 1))
    its = received(count, seconds=seconds, first_batch=1, batches=count)
    return replace(
        observed(rate),
        plan=StepPlan(clients=2, settings=settings, duration_s=10),
        publisher_reports={0: published(count, seconds=seconds)},
        subscriber_reports=reporting(its, its),
        window_ns=(START, START + round(window_s * SECOND)),
    )


@pytest.mark.parametrize(("count", "delay_s"), [(1, 0.0001), (2, 0.002), (99, 0.01)])
def test_a_few_messages_at_full_rate_have_no_rate(count: int, delay_s: float) -> None:
    found = figures(sent(count, "max", delay_s, delay_s))
    assert [found[name] for name in (*RATES, "rx_span_rate_pps")] == [None] * 7
    assert (found["total_tx"], found["client_loss_pct"]) == (count, 0.0)


def test_the_rate_of_a_number_of_messages_at_full_rate_begins_with_the_first_of_them() -> None:
    # 100 messages in 99 intervals of 10 ms; the window began 0.51 s before the first.
    found = figures(sent(100, "max", 0.99, 1.5))
    assert [found[name] for name in RATES if "mb_s" not in name] == pytest.approx([100, 100, 200, 100])
    assert [found[name] for name in ("tx_mb_s", "rx_mb_s")] == pytest.approx([100 * 24 / 1e6, 200 * 24 / 1e6])


@pytest.mark.parametrize(("count", "rate"), [(1, 1.0), (2, 1.0), (2, 0.5), (7, 3.0)])
def test_the_window_of_messages_at_a_rate_lasts_as_long_as_they_are_due(count: int, rate: float) -> None:
    plan = StepPlan(clients=2, settings=Settings(rate=rate, messages=count), duration_s=30)
    last_s = (count - 1) / rate
    progress = {0: Progress(ids=[0], seq=1, epoch=1, messages=count, time_ns=START + round(last_s * SECOND))}
    end_ns = window_end_ns(plan, progress, range(1), START)
    assert end_ns == START + round(count / rate * SECOND)
    found = figures(sent(count, rate, last_s, (end_ns - START) / SECOND))
    assert [found[name] for name in ("avg_tx_rate_pps", "avg_rx_rate_pps")] == pytest.approx([rate, rate])


@pytest.mark.parametrize(
    ("rate", "window_s", "due", "pps"),
    [
        (0.1, 5, 1, 0.1),
        (0.3, 5, 2, 0.3),
        (7.0, 1.5, 11, 7.0),
        (100.0, 5, 500, 100.0),
        (333.3, 10, 3333, 333.3),
        (7.0, 1.5, 8, 5.09),
    ],
)
def test_a_window_that_ends_within_an_interval_raises_no_rate(
    rate: float, window_s: float, due: int, pps: float
) -> None:
    o = sent(due, rate, (due - 1) / rate, window_s)
    found = figures(replace(o, plan=replace(o.plan, settings=Settings(rate=rate))))
    assert [found[name] for name in RATES[:2]] == pytest.approx([pps, pps], rel=1e-3)


def test_the_window_of_messages_ends_with_the_last_of_a_slow_publisher_and_waits_for_all() -> None:
    plan = StepPlan(clients=2, settings=Settings(rate=10.0, messages=5), duration_s=30)
    late = Progress(ids=[0], seq=1, epoch=1, messages=5, time_ns=START + 4 * SECOND)
    assert window_end_ns(plan, {0: late}, range(1), START) == START + 4 * SECOND
    assert window_end_ns(plan, {0: late}, range(2), START) is None


@pytest.mark.parametrize(("seconds", "pps"), [(4.0, 5.0), (3.8, 5.0), (3.86, 5.0), (8.0, 2.5), (1.9, 10.0)])
def test_the_rate_of_a_tool_is_over_its_own_time(seconds: float, pps: float) -> None:
    # The window also has 2 s of Java's start; 20 messages at 5/s span 3.8 s and take 4 s.
    tool = replace(sent(20, 5.0, seconds, seconds + 2), counted=True)
    assert figures(tool)["avg_tx_rate_pps"] == pytest.approx(pps)


@pytest.mark.parametrize(
    ("count", "rate", "pps", "silent"),
    [
        (20, 5.0, 5.0, False),
        (20, 20.0, 5.0, False),
        (200, "max", 50.0, False),
        (20, 5.0, 5.0, True),
        (0, 5.0, None, False),
    ],
)
def test_the_megabytes_of_a_tool_are_over_the_same_time_as_its_rate(
    count: int, rate: Rate, pps: float | None, silent: bool
) -> None:
    # The window has 6 s of the start of programs; one of two subscribers may read nothing.
    its = received(count, seconds=4.0, first_batch=0, batches=2 if count else 0)
    nothing = received(0, seconds=0.0, batches=0)
    step = replace(sent(count, rate, 4.0, 10.0), counted=True)
    found = figures(replace(step, subscriber_reports=reporting(its, nothing if silent else its)))
    assert found["avg_rx_rate_pps"] == pps
    assert found["rx_mb_s"] == (None if pps is None else pytest.approx((1 if silent else 2) * 24 * pps / 1e6))
