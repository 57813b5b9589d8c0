"""Who lost when, as heat maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hydra.jupyter import run_data
from hydra.jupyter.loss_heatmap import losers
from hydra.model import LedgerCounts, StepPlan, SubscriberReport, TimeSeriesFacts
from hydra.store.database import RunStore
from hydra.wire.subscriber_table import table_of
from tests.jupyter.conftest import Loaded
from tests.jupyter.runs import FIXED, found_one, load_steps, make, observe
from tests.measure.reports import received

RATE, SECONDS = 100.0, 10.0
DUE = int(RATE * SECONDS)


def missing(*gaps: tuple[int, int], truncated: int = 0) -> SubscriberReport:
    lost = sum(last - first + 1 for first, last in gaps) + truncated
    ledger = LedgerCounts(0, DUE - lost, DUE - lost, lost, missing_ranges=list(gaps), truncated=truncated > 0)
    return received(DUE - lost, ledgers=[ledger])


def run_of(
    directory: Path, *steps: Mapping[int, SubscriberReport], count: int = 4, silent: frozenset[int] = frozenset()
) -> run_data.RunData:
    """A run with a row a step, whose other subscribers lost nothing."""
    counts = tuple(range(count, count + len(steps)))
    settings = replace(FIXED.settings, rate=RATE)
    scenario = replace(FIXED, sweep=replace(FIXED.sweep, clients=counts), settings=settings)
    observed = []
    for clients, lossy in zip(counts, steps, strict=True):
        table = table_of({n: lossy.get(n, received(DUE)) for n in range(1, clients + 1) if n not in silent})
        o = observe(scenario, StepPlan(clients, settings, SECONDS))
        observed.append(replace(o, subscriber_reports=table, silent=set(silent)))
    return load_steps(directory, scenario, *observed)


def test_each_subscriber_stands_beside_each_step_and_each_part_of_the_worst(tmp_path: Path) -> None:
    lossy = {2: missing((0, 9))}, {3: missing((500, 599)), 5: missing((990, 999))}
    found = found_one(losers(run_of(tmp_path / "r", *lossy)))
    by_step, by_time = found.figure.data
    assert (by_step.x, by_step.y) == (("4 subscribers", "5 subscribers"), ("1", "2", "3", "4", "5"))
    assert [list(line) for line in by_step.text] == [["0", "0"], ["1", "0"], ["0", "10"], ["0", "0"], ["", "1"]]
    # The window has sixty parts of 16.7 messages.
    assert [n for n, text in enumerate(by_time.text[2]) if text != "0"] == [*range(30, 36)]
    assert by_time.text[2][31] == "100"
    assert [n for n, text in enumerate(by_time.text[4]) if text != "0"] == [59]
    assert "5 subscribers" in found.figure.layout.annotations[1].text
    assert "first gaps" not in found.note


def test_many_subscribers_share_lines_and_the_page_stays_small(tmp_path: Path) -> None:
    found = found_one(losers(run_of(tmp_path / "r", {n: missing((0, 99)) for n in range(1, 50)}, count=1000)))
    (by_time,) = found.figure.data
    assert len(by_time.y) <= 60
    assert by_time.y[0] == "1 – 17"
    assert float(by_time.text[0][0]) == 100
    assert len(found.figure.to_json()) < 100_000
    assert "the mean of 17 subscribers" in found.note


def test_what_was_not_stored_is_told(tmp_path: Path) -> None:
    found = found_one(losers(run_of(tmp_path / "r", {1: missing((0, 99), truncated=99)})))
    assert "1 subscriber has only the first missing ranges stored" in found.note
    assert [cell is None for cell in found.figure.data[-1].z[0]] == [False] * 6 + [True] * 54


def test_where_the_time_is_not_known_the_steps_are_shown_alone(tmp_path: Path) -> None:
    found = found_one(losers(run_of(tmp_path / "r", {1: missing(truncated=99)})))
    (by_step,) = found.figure.data
    assert list(by_step.text[0]) == ["9.9"]
    assert "gaps" not in found.note


def test_who_did_not_report_is_blank(tmp_path: Path) -> None:
    found = found_one(losers(run_of(tmp_path / "r", {1: missing((0, 9))}, silent=frozenset({3}))))
    assert set(found.figure.data[-1].z[2]) == {None}


def test_where_nobody_lost_anything_there_is_no_plot(loaded: Loaded, tmp_path: Path) -> None:
    assert losers(loaded("fixed")) is None
    assert losers(run_data.load(make(tmp_path / "none", FIXED, steps=0, ended="failed"))) is None


def test_the_steps_of_a_search_stand_side_by_side(loaded: Loaded) -> None:
    across = found_one(losers(loaded("search"))).figure.data[0].x
    assert len(across) == len(set(across)) <= 40
    assert across[0].startswith("30 at ")


def test_what_may_have_been_on_its_way_is_no_loss(tmp_path: Path) -> None:
    assert losers(run_of(tmp_path / "r", {1: replace(missing((0, 9)), drain="deadline")})) is None


def test_a_changing_rate_is_read_as_it_was_carried_out(tmp_path: Path) -> None:
    run = run_of(tmp_path / "r", {1: missing((900, 999))})
    # 500 messages are due in the first nine seconds, and 500 in the last.
    load = ((0.0, 500 / 9), (9.0, 500 / 9), (9.0, 500.0))
    with RunStore.open(run.directory, writable=True) as store:
        store.begin_time_series(1, replace(run.results[0].plan, load=load), TimeSeriesFacts(0, SECONDS, 1, 4.0))
    shown = found_one(losers(run)).figure.data[-1]
    lossy = [at for at, text in zip(shown.x, shown.text[0], strict=True) if text != "0"]
    assert min(lossy) > 9.7
