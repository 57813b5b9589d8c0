"""The first paragraph of a report and its numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.jupyter.markup import title
from hydra.jupyter.summary import numbers, request_sentence
from hydra.sweep import Row
from tests.jupyter.conftest import Loaded
from tests.jupyter.runs import KINDS


def test_what_was_measured_stands_at_the_head_of_a_report(loaded: Loaded) -> None:
    parts = ("1 publisher → 30, 60, 120 subscribers", "24 B", "pyzmq", "steps of 10 s")
    line = " · ".join(f"<span>{part}</span>" for part in parts)
    assert f'<p class="setup">{line}</p>' in title(loaded("fixed")).text


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_run_says_what_it_carries_and_what_limits_it(loaded: Loaded, kind: str) -> None:
    run = loaded(kind)
    labels = [n.label for n in numbers(run)]
    assert labels[0] == "carried"
    assert labels[-1] == "limited by"
    assert len(labels) == len(set(labels)) <= 4
    assert all(n.value for n in numbers(run))


def test_a_grid_is_told_by_its_best_row_without_loss(loaded: Loaded) -> None:
    run = loaded("fixed")
    assert request_sentence(run) == "10,000 messages/s, on here on 2026-02-03."
    carried = numbers(run)[0]
    best = max(float(str(row["aggregate_pps"] or 0)) for row in run.rows)
    assert (carried.value, carried.clean) == (f"{best:,.0f}/s", True)
    assert carried.detail.startswith("without loss")


def test_a_row_that_is_not_clean_is_delivered_and_never_carried(loaded: Loaded) -> None:
    """120 subscribers lose a third, and receive most: the highest clean row comes first."""
    carried, delivered, *_ = numbers(loaded("batch"))
    assert (carried.label, carried.clean, delivered.label, delivered.clean) == ("carried", True, "delivered", False)
    assert "60 subscribers" in carried.detail
    assert "120 subscribers" in delivered.detail
    assert "at 30,000/s" in delivered.detail
    assert "% lost" in delivered.detail.partition("not clean: ")[2]


def test_a_row_at_rate_max_states_what_subscribers_received_before_what_was_sent(loaded: Loaded) -> None:
    run = loaded("fixed")
    rates: Row = {
        "requested_rate": "max",
        "aggregate_pps": 30_000.0,
        "avg_rx_rate_pps": 1000.0,
        "avg_tx_rate_pps": 1500.0,
    }
    first, *_ = numbers(replace(run, rows=[{**run.rows[0], **rates}]))
    assert (first.label, first.value) == ("received", "30,000/s")
    assert "messages received by all subscribers together (30 subscribers), 1,000/s each; sent: 1,500/s" in first.detail
