"""The rows of subscribers, made of a table: each client's own, however many there are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hydra.measure.observation import Observation
from hydra.model import LAG_BINS, Histogram, LedgerCounts, ProcessUsage, SequenceRange, SubscriberReport
from hydra.results.clients import COLUMNS, client_rows
from hydra.results.subscriber_rows import MOST_RANGES
from hydra.wire.table import table_of
from tests.measure.reports import START, received
from tests.measure.test_figures import observed

FULL = SubscriberReport(
    ledgers=[
        LedgerCounts(0, 700, 600, 4, [(1, 3), (9, 9)], False, 1, 2, 3),
        LedgerCounts(5, 300, 300, 0, [], True, 10, 20, 30),
        LedgerCounts(7, 0, 0, 1, [(0, 0)]),
    ],
    batches=40,
    first_batch=8,
    first_ns=START + 5,
    last_ns=START + 2_000_000_000,
    bytes=2**20,
    stale=6,
    latency=Histogram([10, 60, 3000, 39, 4000, 1], 10, 5_000),
    usage=ProcessUsage(1.5, 0.25, 4096),
    undrained=7,
    absent=[(START, START + 9), (START + 20, START + 30)],
    reconnects=2,
    felt=False,
    drain="deadline",
    lag_bins_us=[5, None] * (LAG_BINS // 2),
    system={"rebalance_ms": 500.0, "rebalances": 2},
)


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
    assert row == {
        "epoch": 3,
        "client": 1,
        "role": "subscriber",
        "state": "ok",
        "agent": "a",
        "cohort": 1,
        "messages": 1000,
        "in_window": 900,
        "missing": 5,
        "duplicates": 11,
        "reordered": 22,
        "stale": 6,
        "extra": 33,
        "undrained": 7,
        "batches": 40,
        "first_batch": 8,
        "first_ns": 5,
        "last_ns": 2_000_000_000,
        "bytes": 2**20,
        "p50_us": 10,
        "p99_us": 3953,
        "max_us": 5000,
        "cpu_user_s": 1.5,
        "cpu_system_s": 0.25,
        "max_rss_bytes": 4096,
        "missing_ranges": {"0": [[1, 3], [9, 9]], "7": [[0, 0]]},
        "truncated": 1,
        "more": {
            "absent": [[START, START + 9], [START + 20, START + 30]],
            "reconnects": 2,
            "lag_bins_us": [5, None] * (LAG_BINS // 2),
            "rebalance_ms": 500.0,
            "rebalances": 2,
            "drain": "deadline",
            "felt": False,
            "received": {"0": 700, "5": 300, "7": 0},
        },
    }
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
    told = replace(FULL, system={"figures": {"fetch_ms": 1.0}})
    (row, _) = rows(replace(observed(), subscriber_reports=table_of({1: told})))
    assert (row["more"]["figures"]["fetch_ms"], row["more"]["figures"]["messages"]) == (1.0, 1000)


def test_who_received_nothing_has_no_times_and_no_percentiles() -> None:
    nothing = SubscriberReport([LedgerCounts(0, 0, 0, 9)], 0, 0, 0, 0, 0, 0, Histogram(), ProcessUsage())
    (row, _) = rows(replace(observed(), subscriber_reports=table_of({1: nothing})))
    assert [row[name] for name in ("first_ns", "last_ns", "p50_us", "p99_us", "max_us")] == [None, None, None, None, 0]
    assert (row["messages"], row["missing"], row["more"]["figures"]["records_per_sec"]) == (0, 9, 0.0)


def test_of_each_publisher_the_first_missing_ranges_are_kept() -> None:
    many = [(10 * n, 10 * n + n % 3) for n in range(MOST_RANGES + 5)]
    missing: dict[int, dict[int, list[SequenceRange]]] = {
        1: {0: many, 5: many[:1]},
        2: {},
        3: {0: [], 5: many[: MOST_RANGES + 1]},
        4: {7: many[:MOST_RANGES]},
    }
    reports = {
        client: replace(received(), ledgers=[LedgerCounts(p, 9, 9, 100, ranges) for p, ranges in of_it.items()])
        for client, of_it in missing.items()
    }
    o = replace(observed(), subscribers=set(missing), subscriber_reports=table_of(reports), dead=set(), cohort=set())
    assert [row["missing_ranges"] for row in rows(o)] == [
        {str(p): [list(pair) for pair in ranges[:MOST_RANGES]] for p, ranges in of_it.items() if ranges} or None
        for of_it in missing.values()
    ]
    assert [row["truncated"] for row in rows(o)] == [1, 0, 1, 0]


def test_thousands_of_rows_are_each_their_own_clients() -> None:
    told = {c: received(c, lost=c % 7) for c in range(1, 10_001) if c % 1000}
    o = replace(
        observed(),
        subscribers=range(1, 10_001),
        subscriber_reports=table_of(told),
        dead={3000, 17},
        silent={4000},
        last_words={3000: 11},
    )
    found = rows(o)
    assert [row["client"] for row in found] == list(range(1, 10_001))
    for row in found:
        client = row["client"]
        state = "dead" if client in (3000, 17) else "ok" if client % 1000 else "silent"
        assert (row["state"], row["messages"], row["missing"]) == (
            (state, client, client % 7) if client % 1000 else (state, None, None)
        )
    assert (found[2999]["more"], found[3999]["more"]) == ({"last_word": 11}, None)
