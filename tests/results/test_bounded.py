"""A latency below the bound of the clocks is shown as what it may be at most, and kept as it was measured."""

from __future__ import annotations

import csv
import json
import random
from math import floor

import pytest

from hydra.model import Figure
from hydra.report import tables
from hydra.report.figure_texts import at_most, bounded_text, error_text
from hydra.sweep import Row
from tests.jupyter.runs import FIXED

ROW: Row = {
    "clients": 30, "latency_p50_us": -12, "latency_p99_us": 152, "latency_p999_us": 153, "latency_bound_us": 152.01,
    "negative_latencies": 7, "ack_p50_us": 3, "tx_lag_p99_us": 5, "rx_p50": 9, "status": "ok", "reason": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("latency_p50_us", "< 141"),
        ("latency_p99_us", "< 305"),
        ("latency_p999_us", 153),
        # These need no second clock.
        *(("ack_p50_us", 3), ("tx_lag_p99_us", 5), ("rx_p50", 9), ("latency_bound_us", 152.01)),
        ("latency_max_us", None),
    ],
)
def test_only_latencies_below_the_bound_are_shown_as_that(name: str, text: Figure) -> None:
    assert bounded_text(ROW, name) == text
    # Since the send it is the same.
    assert (
        bounded_text({"latency_from_send_p90_us": 10, "latency_bound_us": 10.5}, "latency_from_send_p90_us") == "< 21"
    )


@pytest.mark.parametrize("bound", [0.0, None])
@pytest.mark.parametrize("latency", [-3, 0, 50])
def test_on_one_host_and_where_no_bound_is_known_a_latency_is_what_was_measured(bound: Figure, latency: int) -> None:
    assert bounded_text({"latency_p50_us": latency, "latency_bound_us": bound}, "latency_p50_us") == latency
    assert bounded_text({"latency_p50_us": latency}, "latency_p50_us") == latency


def test_the_bound_of_a_repeated_row_is_the_largest_of_its_repeats() -> None:
    ends = ("", "_low", "_high")
    row: Row = dict(zip([f"latency_p50_us{end}" for end in ends], (40, 30, 90), strict=True))
    row |= dict(zip([f"latency_bound_us{end}" for end in ends], (20.0, 10.0, 50.0), strict=True))
    assert [bounded_text(row, f"latency_p50_us{end}") for end in ends] == ["< 90", "< 80", 90]
    assert [error_text(row, f"latency_p50_us{end}") for end in ends] == ["", "", " ± 50"]
    assert at_most(row, "latency_p50_us") == 90.0


def test_the_truth_is_within_what_is_shown_wherever_the_clocks_are_within_their_bound() -> None:
    dice = random.Random(5)
    for _ in range(2000):
        bound_us, truth_us = dice.uniform(1, 500), dice.uniform(0, 1000)
        # Whole microseconds, rounded down, as clients count them.
        measured_us = floor(truth_us + dice.uniform(-bound_us, bound_us))
        row: Row = {"latency_p50_us": measured_us, "latency_bound_us": bound_us}
        limit = at_most(row, "latency_p50_us")
        assert (limit is not None) == (measured_us < bound_us)
        assert truth_us <= measured_us + bound_us + 1
        assert limit is not None or truth_us >= measured_us - bound_us


def test_the_table_for_spreadsheets_shows_it_and_the_one_for_programs_has_the_number() -> None:
    (line,) = csv.DictReader(tables.RunTables(FIXED, [ROW]).csv.splitlines())
    assert (line["latency_p50_us"], line["latency_p99_us"], line["latency_p999_us"]) == ("< 141", "< 305", "153")
    assert (line["latency_bound_us"], line["negative_latencies"]) == ("152.01", "7")
    (row,) = json.loads(tables.RunTables(FIXED, [ROW]).json)["rows"]
    assert (row["latency_p50_us"], row["latency_p99_us"]) == (-12, 152)
