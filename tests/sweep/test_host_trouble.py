"""Trouble on the hosts of a row, in short."""

from __future__ import annotations

import pytest

from hydra.config.scenario import load_scenario
from hydra.measure.disturbance import Disturbance, Disturbances
from hydra.report.host_warnings import HostBusy, HostShared, RowDisturbed
from hydra.report.row_warnings import warnings_of
from hydra.sweep import Row, texts_of
from hydra.sweep.cleanness import host_trouble, host_trouble_in_short
from tests.sweep.clean_row import CLEAN

OTHERS = Disturbances((Disturbance("h", 77.4, (("python3", 77.4),), throttled=2),))
BUSY: Row = {"host_cpu_mean_pct": 99.0, "host_others_pct": 50.0, "disturbed": OTHERS}
CAUSES = "a host had no CPU left, other processes used 77 % of a host's CPU, the CPU was slowed down"


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({}, ""),
        ({"host_cpu_mean_pct": 91.0, "host_others_pct": 4.9, "disturbed": None}, ""),
        ({"host_others_pct": 5.0}, "other processes used 5 % of a host's CPU"),
        ({"host_cpu_mean_pct": 92.0}, "a host had no CPU left"),
        (BUSY, CAUSES),
        ({"disturbed": Disturbances((Disturbance("h", clock_jumps=1),))}, "a clock jumped"),
    ],
)
def test_a_row_has_trouble_if_it_has_a_warning_about_its_hosts(row: Row, text: str) -> None:
    assert host_trouble(row) == text
    about = [w for w in warnings_of({**CLEAN, **row}, load_scenario("zmqfixed")) if isinstance(w, WARNINGS)]
    assert bool(about) is bool(text)


WARNINGS = (HostBusy, HostShared, RowDisturbed)


def test_a_list_names_the_first_row_with_trouble() -> None:
    assert host_trouble_in_short([CLEAN]) == ""
    assert host_trouble_in_short([{**CLEAN, **BUSY}]) == CAUSES
    assert host_trouble_in_short([CLEAN, {**CLEAN, "clients": 60, **BUSY}]) == f"1 of 2 rows: 60 subscribers: {CAUSES}"


HELD: Row = {"clients": 30, "status": "ok", "loss_answer": "held", "max_rate_below_0_5pct_drop_pps": 2000.0}


@pytest.mark.parametrize(("scenario", "row"), [("zmqfixed", {**CLEAN, "aggregate_pps": 3e5}), ("nats-rate", HELD)])
@pytest.mark.parametrize(("trouble", "noted"), [({}, False), (BUSY, True)])
def test_a_headline_states_the_trouble_on_the_hosts_of_its_row(
    scenario: str, row: Row, trouble: Row, noted: bool
) -> None:
    first, *_ = texts_of(load_scenario(scenario)).headline([{**row, **trouble}], lambda _: "30 subscribers")
    label = "held" if row is HELD else "carried"
    assert (first.label, first.clean, first.noted) == (label, True, noted)
    assert first.detail.endswith(CAUSES) is noted
