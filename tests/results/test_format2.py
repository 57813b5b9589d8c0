"""Runs that an earlier version stored, in format2/: they are listed, shown and gone on with as that version did it."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest

from hydra.errors import RunDirectoryError
from hydra.jupyter import markup, run_data
from hydra.measure.figures import merge_histograms
from hydra.model import StepResult
from hydra.report import tables
from hydra.report.run_catalog import catalog
from hydra.run.run_metadata import scenario_of
from hydra.store.database import DATABASE, RunStore
from tests.results.stored_steps import PLAN, with_clocks

FORMAT2 = Path(__file__).with_name("format2")
RUNS = sorted(path.stem for path in FORMAT2.glob("*.db"))
"""Each with the ``table.csv`` that the version that made it wrote."""


def copied(name: str, folder: Path) -> Path:
    """A run directory with the database of that name."""
    (folder / name).mkdir()
    shutil.copy(FORMAT2 / f"{name}.db", folder / name / DATABASE)
    return folder / name


def measured(table: str) -> str:
    """A ``table.csv`` without its last two columns, which that version did not have: ``clean`` and ``why``."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(line[:-2] for line in csv.reader(table.splitlines()))
    return out.getvalue()


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return copied(request.param, tmp_path)


@pytest.mark.parametrize("run", RUNS, indirect=True)
def test_its_table_is_byte_for_byte_what_it_was_and_going_on_with_it_asks_for_no_other_steps(run: Path) -> None:
    golden = (FORMAT2 / f"{run.name}.csv").read_text()
    seen = run_data.load(run)
    assert (seen.coming, seen.earlier) == (None, None)
    assert measured(tables.csv_text(seen.scenario, seen.rows)) == golden
    resolved = scenario_of(run, run.name, {})
    with RunStore.open(run) as store:
        results = store.results()
    sweep = resolved.sweep
    assert sweep.next(results) is None
    assert sweep.next(results[:-1]) == results[-1].plan
    assert measured(tables.csv_text(resolved.scenario, sweep.rows(results))) == golden


@pytest.mark.parametrize("run", RUNS, indirect=True)
def test_it_knows_no_clocks_nor_counters_of_hosts_and_takes_steps_that_do(run: Path) -> None:
    with RunStore.open(run) as store:
        epochs = range(1, store.last_epoch() + 1)
        before = [store.histogram(epoch) for epoch in epochs]
        assert any(h.counts for h in before) == (run.name == "zmqfixed")
        for known in (store.clocks, store.host_samples, store.host_of, store.threads):
            assert all(known(epoch) == {} for epoch in epochs)
    with RunStore.open(run, writable=True) as store:
        store.add_step(StepResult(1000, PLAN, "ok"), with_clocks())
    with RunStore.open(run, writable=True) as store:
        assert [store.histogram(epoch) for epoch in epochs] == before
        assert store.histogram(1000) == merge_histograms(with_clocks()).latency
        assert store.clocks(1000) == with_clocks().clocks
        assert store.host_samples(1000)["h"] == with_clocks().hosts["h"]
        assert store.threads(1000) == with_clocks().threads
        assert all(store.host_samples(epoch) == {} for epoch in epochs)


@pytest.mark.parametrize(
    ("run", "given", "said"),
    [
        *[(run, {"settings.message_size": 64}, r"settings\.message_size was 24 and is now 64") for run in RUNS],
        ("zmqfixed", {"settings.msg_batch": 7}, "burst"),
    ],
    indirect=["run"],
)
def test_what_it_was_not_started_with_is_refused_by_name(run: Path, given: dict[str, object], said: str) -> None:
    with pytest.raises(RunDirectoryError, match=f"another scenario: .*{said}"):
        scenario_of(run, run.name, given)


@pytest.mark.parametrize("run", ["zmqfixed"], indirect=True)
def test_the_usual_burst_may_be_named_or_not(run: Path) -> None:
    assert scenario_of(run, run.name, {"settings.msg_batch": 100}) == scenario_of(run, run.name, {})


def test_they_are_listed(tmp_path: Path) -> None:
    for name in RUNS:
        copied(name, tmp_path)
    found = {(entry["scenario"], entry["steps"], entry["ended"]) for entry in catalog(tmp_path)}
    assert found == {("kafka-batch", 2, "finished"), ("zmqfixed", 4, "finished")}


@pytest.mark.parametrize(
    ("run", "shown"),
    [
        ("kafka-batch", "linger_ms 0.0, compression none, acks 1"),
        ("zmqfixed", "sndhwm 1000, rcvhwm 1000, nodrop False"),
    ],
    indirect=["run"],
)
def test_the_report_shows_the_settings_of_its_system_alone(run: Path, shown: str) -> None:
    text = markup.facts(run_data.load(run)).text
    assert shown in text
    assert ("linger_ms" in text) != ("sndhwm" in text)
