"""The rows of subscribers, made of a table: each client's own, however many there are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hydra.measure.observation import Observation
from hydra.model import LAG_BINS, Histogram, LedgerCounts, ProcessUsage, SubscriberReport
from hydra.store.client_rows import COLUMNS, MOST_RANGES, client_rows
from hydra.wire.subscriber_table import table_of
from tests.measure.observations import observed
from tests.measure.reports import START, received

FULL = SubscriberReport(
    ledgers=[
        LedgerCounts(0, 700, 600, 4, [(1, 3), (9, 9)], False, 1, 2, 3),
        LedgerCounts(5, 300, 300, 0, [], True, 10, 20, 30),
        LedgerCounts(7, 0, 0, 1, [(0, 0)]),
    ],
    batches=40, first_batch=8, first_ns=START + 5, last_ns=START + 2_000_000_000, bytes=2**20, stale=6,
    latency=Histogram([10, 60, 3000, 39, 4000, 1], 10, 5_000), usage=ProcessUsage(1.5, 0.25, 4096), undrained=7,
    absent=[(START, START + 9), (START + 20, START + 30)], reconnects=2, felt=False, drain="deadline",
    lag_bins_us=[5, None] * (LAG_BINS // 2), system={"rebalance_ms": 500.0, "rebalances": 2},
)  # fmt: skip


def rows(o: Observation) -> list[dict[str, Any]]:
    """Those of the subscribers, their JSON decoded."""
    found = [dict(zip(COLUMNS, row, strict=True)) for row in client_rows(3, o)]
    for row in found:
        row |= {name: json.loads(row[name]) if row[name] else None for name in ("missing_ranges", "more")}
    return [row for row in found if row["role"] == "subscriber"]


def test_a_row_holds_what_its_client_reported() -> None:
    o = replace(observed(), subscriber_reports=table_of({1: FULL, 2: received()}), agents={1: "a"}, cohort={1})
    row, other = rows(o)
    figures = row["more"].pop("figures")
    assert row.pop("more") == {
        "absent": [[START, START + 9], [START + 20, START + 30]], "reconnects": 2, "felt": False, "drain": "deadline",
        "lag_bins_us": [5, None] * (LAG_BINS // 2), "rebalance_ms": 500.0, "rebalances": 2,
        "received": {"0": 700, "5": 300, "7": 0},
    }  # fmt: skip
    assert row == {
        "epoch": 3, "client": 1, "role": "subscriber", "state": "ok", "agent": "a", "cohort": 1,
        "messages": 1000, "in_window": 900, "missing": 5, "duplicates": 11, "reordered": 22, "stale": 6, "extra": 33,
        "undrained": 7, "batches": 40, "first_batch": 8, "first_ns": 5, "last_ns": 2_000_000_000, "bytes": 2**20,
        "p50_us": 10, "p99_us": 3953, "max_us": 5000,
        "cpu_user_s": 1.5, "cpu_system_s": 0.25, "max_rss_bytes": 4096,
        "missing_ranges": {"0": [[1, 3], [9, 9]], "7": [[0, 0]]}, "truncated": 1,
    }  # fmt: skip
    megabytes = pytest.approx(1000 / 1044)
    assert (figures["messages"], figures["mb_consumed"], figures["fetch_ms"]) == (1000, megabytes, 2000)
    assert (other["client"], other["missing_ranges"], list(other["more"])) == (2, None, ["figures"])


def test_where_what_was_stored_is_read_a_rebalance_is_no_fetching() -> None:
    o = replace(observed(), subscriber_reports=table_of({1: FULL}), subscribers={1}, reading_ns=START + 500_000_000)
    (row,) = rows(o)
    figures = row["more"]["figures"]
    assert (figures["rebalance_ms"], figures["fetch_ms"], figures["records_per_sec"]) == (500, 1000, 1000 / 1.5)
    assert figures["fetch_records_per_sec"] == 1000


def test_what_a_system_says_of_itself_goes_before_what_is_computed() -> None:
    reported = replace(FULL, system={"figures": {"fetch_ms": 1.0}})
    (row, _) = rows(replace(observed(), subscriber_reports=table_of({1: reported})))
    assert (row["more"]["figures"]["fetch_ms"], row["more"]["figures"]["messages"]) == (1.0, 1000)


def test_who_received_nothing_has_no_times_and_no_percentiles() -> None:
    nothing = SubscriberReport([LedgerCounts(0, 0, 0, 9)], 0, 0, 0, 0, 0, 0, Histogram(), ProcessUsage())
    (row, _) = rows(replace(observed(), subscriber_reports=table_of({1: nothing})))
    assert [row[name] for name in ("first_ns", "last_ns", "p50_us", "p99_us", "max_us")] == [None, None, None, None, 0]
    assert (row["messages"], row["missing"], row["more"]["figures"]["records_per_sec"]) == (0, 9, 0.0)


def test_of_each_publisher_the_first_missing_ranges_are_kept() -> None:
    many = [(10 * n, 10 * n + n % 3) for n in range(MOST_RANGES + 5)]
    most = many[:MOST_RANGES]
    missing = {1: {0: many, 5: many[:1]}, 2: {}, 3: {0: [], 5: many[: MOST_RANGES + 1]}, 4: {7: most}}
    kept = [{"0": most, "5": many[:1]}, None, {"5": most}, {"7": most}]
    reports = {
        client: replace(received(), ledgers=[LedgerCounts(p, 9, 9, 100, ranges) for p, ranges in of_it.items()])
        for client, of_it in missing.items()
    }
    found = rows(replace(observed(), subscribers=set(missing), subscriber_reports=table_of(reports)))
    assert [row["missing_ranges"] for row in found] == json.loads(json.dumps(kept))
    assert [row["truncated"] for row in found] == [1, 0, 1, 0]


def test_a_thousand_rows_in_parts_are_each_their_own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hydra.store.client_rows.AT_ONCE", 300)
    reported = {c: received(c, lost=c % 7) for c in range(1, 1001) if c % 100}
    o = replace(observed(), subscribers=range(1, 1001), subscriber_reports=table_of(reported))
    found = rows(replace(o, dead={300, 17}, silent={400}, last_words={300: 11}))
    states = {c: "dead" if c in (300, 17) else "ok" if c % 100 else "silent" for c in range(1, 1001)}
    assert [(row["client"], row["state"], row["messages"], row["missing"]) for row in found] == [
        (c, state, c, c % 7) if c % 100 else (c, state, None, None) for c, state in states.items()
    ]
    assert (found[299]["more"], found[399]["more"]) == ({"last_word": 11}, None)
