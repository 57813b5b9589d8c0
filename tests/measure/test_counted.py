"""Steps of tools whose messages have no header: what is counted is shown, what only a header shows is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hydra.measure.message_accounting import acknowledged_after, counted_account, counted_payload
from hydra.model import Histogram, LedgerCounts, ProcessUsage, PublisherReport, Settings, SubscriberReport
from hydra.wire.subscriber_table import SubscriberTable, table_of
from tests.measure.observations import observed, reporting
from tests.measure.reports import received
from tests.suite.figures import figures

SENT = PublisherReport(100, 100, 0, 1, 2, 0, Histogram(), ProcessUsage())
SHOWN = {"max_latency_ms": 9.0, "p50_ms": 1, "p99_ms": 3, "p99_9_ms": 4}


def read(*messages: int) -> SubscriberTable:
    ledgers = [LedgerCounts(0, n, n, 0, truncated=True) for n in messages]
    reports = [SubscriberReport([each], 2, 0, 1, 2, 0, 0, Histogram(), ProcessUsage()) for each in ledgers]
    return table_of(dict(enumerate(reports)))


@pytest.mark.parametrize(
    ("subscribers", "grown", "shared", "words"),
    [
        ((), None, False, "100 each"),
        ((100, 100), 100, False, "100 each"),
        ((40, 60), 100, True, "100 each"),
        ((40, 50), 100, True, "100 acknowledged, 100 in the log, 90 read"),
        ((90, 100), 112, False, "100 acknowledged, 112 in the log, 90 to 100 read"),
        ((), 99, False, "100 acknowledged, 99 in the log"),
    ],
)
def test_the_account(subscribers: tuple[int, ...], grown: int | None, shared: bool, words: str) -> None:
    assert counted_account([SENT], read(*subscribers), grown, shared=shared) == f"counted only: {words}"


@pytest.mark.parametrize(
    ("publishers", "percentiles"),
    [
        ([None], {}),
        ([{"figures": SHOWN}], {"max": 9000, "p50": 1000, "p99": 3000, "p999": 4000}),
        ([{"figures": SHOWN}, {"figures": {"max_latency_ms": 12.5}}], {"max": 12_500}),
    ],
)
def test_percentiles_of_several_publishers_cannot_be_merged(
    publishers: list[dict[str, Any] | None], percentiles: dict[str, Any]
) -> None:
    assert acknowledged_after([replace(SENT, system=text) for text in publishers]) == percentiles


def test_what_only_a_header_tells_is_empty() -> None:
    reports = reporting(received(1000), received(990))
    o = replace(observed(), subscriber_reports=reports, counted=True, log_growth=1000)
    o = replace(o, publisher_reports={0: replace(o.publisher_reports[0], system={"figures": SHOWN})})
    found = figures(o)
    empty = ("client_loss_pct", "lost", "in_window", "duplicates", "aggregate_pps", "passed", "verdict", "bursts_s")
    assert {found[name] for name in empty} == {None}
    assert (found["total_tx"], found["failed_lossy"], found["failed_clients"]) == (1000, 0, 0)
    assert found["payload"] == "random letters, 24 bytes"
    assert found["account"] == "counted only: 1000 acknowledged, 1000 in the log, 990 to 1000 read"
    assert (found["ack_p50_us"], found["ack_max_us"]) == (1000, 9000)
    lines = Settings(message_size=100, payload="lines", payload_file="/there")
    assert counted_payload(lines) == "lines of /there, at random"
