"""Steps of tools whose messages have no header: what is counted is shown, what only a header shows is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hydra.measure.headerless_steps import account, acknowledged_after, only_counts, payload
from hydra.model import Histogram, LedgerCounts, ProcessUsage, PublisherReport, Settings, SubscriberReport
from hydra.wire.subscriber_table import SubscriberTable, table_of

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
    assert account([SENT], read(*subscribers), grown, shared=shared) == f"counted only: {words}"


@pytest.mark.parametrize(
    ("publishers", "columns"),
    [
        ([None], {}),
        ([{"figures": SHOWN}], {"ack_max_us": 9000, "ack_p50_us": 1000, "ack_p99_us": 3000, "ack_p999_us": 4000}),
        ([{"figures": SHOWN}, {"figures": {"max_latency_ms": 12.5}}], {"ack_max_us": 12_500}),
    ],
)
def test_percentiles_of_several_publishers_cannot_be_merged(
    publishers: list[dict[str, Any] | None], columns: dict[str, Any]
) -> None:
    assert acknowledged_after([replace(SENT, system=text) for text in publishers]) == columns


def test_what_only_a_header_tells_is_empty() -> None:
    columns = {"total_tx": 100, "lost": 0, "client_loss_pct": 0.0, "failed_lossy": 1, "failed_clients": 3}
    assert only_counts(columns, Settings(message_size=10), [SENT], read(99), 100, shared=False) == {
        "total_tx": 100, "lost": None, "client_loss_pct": None, "failed_lossy": 0, "failed_clients": 2,
        "payload": "random letters, 10 bytes", "account": "counted only: 100 acknowledged, 100 in the log, 99 read",
    }  # fmt: skip
    lines = Settings(message_size=100, payload="lines", payload_file="/there")
    assert payload(lines) == "lines of /there, at random"
