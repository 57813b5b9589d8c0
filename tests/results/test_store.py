"""The run's database: whole steps or nothing, and the same values back."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from hydra.columns.column import Column, ReportColumn
from hydra.columns.step import SystemColumns
from hydra.errors import EXIT_USAGE, HydraError, RunDirectoryError
from hydra.events.clients import ClientError
from hydra.events.runs import SystemFact
from hydra.measure.figures import figures, merged
from hydra.measure.observation import Observation
from hydra.model import (
    AgentClock,
    BusyThread,
    Cohort,
    CoreTimes,
    Histogram,
    HostCounters,
    HostSample,
    InterfaceCounts,
    LedgerCounts,
    Settings,
    StepPlan,
    StepResult,
    TcpCounts,
    ThreadSample,
)
from hydra.results.clients import publisher_figures, subscriber_figures
from hydra.results.store import DATABASE, RunStore
from hydra.wire.table import table_of
from tests.measure.reports import START, STOP, published, received

COUNTERS = HostCounters(
    cores=[CoreTimes(1.25, 0.5, 10.0), CoreTimes(2.0, 0.0, 10.0)],
    pressure_us={"cpu": 5},
    memory_total=8 << 30,
    memory_available=1 << 62,
    interfaces={"eth0": InterfaceCounts(1, 2, 3, 4, 1000), "eth1": InterfaceCounts(0, 0, 0, 0, None)},
    tcp=TcpCounts(7, 8),
    context_switches=9,
)
PLAN = StepPlan(3, Settings(rate="max"), 10.0, "slow", Cohort("slow", 0.1, 50.0, 7))


def observed() -> Observation:
    lossy = replace(
        received(900, late=10, lost=100, absent=[(1, 2)], felt=False),
        ledgers=[LedgerCounts(0, 900, 890, 100, [(5, 104)], duplicates=2, reordered=3, extra=4)],
    )
    return Observation(
        queue="high-water mark",
        batch=100,
        plan=PLAN,
        publishers={0},
        subscribers={1, 2, 3},
        publisher_reports={0: published(1000, blocked_ns=5)},
        subscriber_reports=table_of({1: received(1000), 2: lossy}, cohort={2}),
        dead={3},
        cohort={2},
        agents={0: "a", 1: "b", 2: "b"},
        window_ns=(START, STOP),
        hosts={"h": [HostSample(START + 1, COUNTERS), HostSample(START + 2, COUNTERS)], "b": []},
        host_of={"a": "h", "b": "h", "c": "b"},
        threads={
            "a": [ThreadSample(START + 1, "g-1", [BusyThread(17, "ZMQbg/IO/0", 99.5)]), ThreadSample(STOP, "g-1")]
        },
    )


def stored(store: RunStore, epoch: int = 1) -> StepResult:
    o = observed()
    result = StepResult(epoch, PLAN, "ok", figures(o))
    store.add_step(result, o)
    return result


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore.create(tmp_path / "run", {"scenario": {"name": "x"}, "command_line": ["hydra", "run"]})


def test_results_come_back_as_they_were_in_order(store: RunStore) -> None:
    one = stored(store)
    two = StepResult(2, PLAN, "skipped", {}, "needs 9 GB")
    store.add_step(two)
    assert store.results() == [one, two]
    assert list(store.results()[0].figures) == list(one.figures)


def test_facts_come_back_and_can_be_replaced(store: RunStore) -> None:
    store.set_meta("ended", 5)
    store.set_meta("ended", 6)
    assert store.metadata() == {"scenario": {"name": "x"}, "command_line": ["hydra", "run"], "ended": 6}
    assert store.meta("nothing", "default") == "default"


def test_the_database_says_what_each_figure_of_a_step_is(store: RunStore) -> None:
    figures_of_step = stored(store).figures
    with contextlib.closing(sqlite3.connect(store.directory / DATABASE)) as db:
        known = {name: (unit, text) for name, unit, text in db.execute("SELECT name, unit, help FROM columns")}
    assert figures_of_step.keys() - known.keys() == set()
    assert known["blocked_s"][0] == "s"
    assert known["blocked_s"][1].startswith("time that a publisher waited")


def test_the_database_says_what_the_systems_own_columns_are(tmp_path: Path) -> None:
    own = SystemColumns(
        batch=Column("in_flight", "messages", "sent before an answer"),
        reported=[ReportColumn("stalls", "", "how often it stalled", role="publisher", key="stalls")],
    )
    with (
        RunStore.create(tmp_path / "r", {}, own),
        contextlib.closing(sqlite3.connect(tmp_path / "r" / DATABASE)) as db,
    ):
        known = dict(db.execute("SELECT name, help FROM columns").fetchall())
    assert (known["in_flight"], known["stalls"]) == ("sent before an answer", "how often it stalled")
    assert "burst" not in known


def test_the_caller_goes_on_with_other_work_between_the_rows_of_many(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hydra.results.store.AT_ONCE", 3)
    calls: list[int] = []
    o = observed()
    store.add_step(StepResult(1, o.plan, "ok", figures(o)), o, None, lambda: calls.append(1))
    assert [row["client"] for row in store.clients(1)] == [0, 1, 2, 3]
    assert len(calls) == 2


def test_a_run_of_a_version_that_did_not_say_so_is_read(store: RunStore) -> None:
    result = stored(store)
    with contextlib.closing(sqlite3.connect(store.directory / DATABASE)) as db, db:
        db.execute("DROP TABLE columns")
    with RunStore.open(store.directory, writable=True) as opened:
        opened.add_step(replace(result, epoch=2))
        assert [r.epoch for r in opened.results()] == [1, 2]


def test_every_asked_client_has_a_row(store: RunStore) -> None:
    stored(store)
    rows = store.clients(1)
    assert [(r["client"], r["role"], r["state"], r["messages"]) for r in rows] == [
        (0, "publisher", "ok", 1000),
        (1, "subscriber", "ok", 1000),
        (2, "subscriber", "ok", 900),
        (3, "subscriber", "dead", None),
    ]
    assert [r["agent"] for r in rows] == ["a", "b", "b", ""]
    assert rows[0]["more"]["blocked_ns"] == 5
    assert publisher_figures(rows)[0] == {"records": 1000, "records_per_sec": 100.0, "mb_per_sec": 2400 / 2**20}
    its = subscriber_figures(rows)
    assert its[3] == {}
    assert (its[1]["messages"], its[1]["mb_consumed"]) == (1000, 24_000 / 2**20)
    lossy = rows[2]
    assert (lossy["cohort"], lossy["in_window"], lossy["missing"], lossy["p99_us"]) == (1, 890, 100, 50)
    assert (lossy["duplicates"], lossy["reordered"], lossy["extra"]) == (2, 3, 4)
    assert lossy["missing_ranges"] == {"0": [[5, 104]]}
    assert lossy["more"] == {"absent": [[1, 2]], "felt": False, "figures": its[2]}


def test_ranges_beyond_what_is_stored_are_flagged(store: RunStore) -> None:
    ranges = [(k * 10, k * 10) for k in range(100)]
    many = replace(received(900, lost=100), ledgers=[LedgerCounts(0, 900, 900, 100, ranges)])
    store.add_step(StepResult(1, PLAN, "ok"), replace(observed(), subscriber_reports=table_of({1: many})))
    row = store.clients(1)[1]
    assert (len(row["missing_ranges"]["0"]), row["truncated"], row["missing"]) == (32, 1, 100)


def test_histograms_and_samples_come_back(store: RunStore) -> None:
    stored(store)
    expected = merged(observed())
    assert store.histogram(1) == expected.latency
    assert store.histogram(1, "lag") == expected.lag
    assert store.histogram(1, "cohort_latency") == expected.cohort_latency
    assert store.histogram(9).counts == []
    assert store.host_samples(1) == {"h": observed().hosts["h"]}
    assert store.host_of(1) == observed().host_of
    assert store.threads(1) == observed().threads
    assert (store.host_samples(9), store.host_of(9), store.threads(9)) == ({}, {}, {})


def with_clocks() -> Observation:
    early = replace(received(1000), latency=Histogram([-3001, 2, -2, 1, 0, 5, 50, 992], -3500, 50))
    clocks = {
        "a": AgentClock(0, 0, 0, 0, same_host=True, jumps=0),
        "b": AgentClock(-(10**15), 40_000, 75_000, 110_000, same_host=False, jumps=2),
    }
    return replace(observed(), subscriber_reports=table_of({1: early}), clocks=clocks)


def test_clocks_and_latencies_below_zero_come_back(store: RunStore) -> None:
    store.add_step(StepResult(1, PLAN, "ok"), with_clocks())
    assert store.clocks(1) == with_clocks().clocks
    assert store.clocks(2) == {}
    assert store.histogram(1) == merged(with_clocks()).latency
    assert (store.clients(1)[1]["p50_us"], store.clients(1)[1]["max_us"]) == (50, 50)


def test_latencies_that_are_all_below_zero_come_back(store: RunStore) -> None:
    report = replace(received(1000), latency=Histogram([-3001, 2], -3500, -3000))
    store.add_step(StepResult(1, PLAN, "ok"), replace(observed(), subscriber_reports=table_of({1: report})))
    assert store.histogram(1) == report.latency


@pytest.mark.parametrize("repeat", [1, 3])
def test_steps_of_repeated_rows_come_back_with_their_histograms(tmp_path: Path, repeat: int) -> None:
    with RunStore.create(tmp_path / "run", {"scenario": {"sweep": {"repeat": repeat}}}) as store:
        stored(store)
        store.add_step(StepResult(2, PLAN, "failed", {}, "x"))
        measured, failed = store.results()
    expected = merged(observed())
    assert measured.histograms == ({"latency": expected.latency, "lag": expected.lag} if repeat > 1 else {})
    assert failed.histograms == {}


def test_what_became_of_every_message_of_a_client_derives_from_its_row(store: RunStore) -> None:
    """Not received and not waiting is unknown where the drain ended at its deadline, and lost where it did not."""
    o = replace(
        observed(),
        subscribers={1, 2, 3, 4, 5},
        subscriber_reports=table_of(
            {
                1: received(700, late=100, lost=300, undrained=250, drain="deadline"),
                2: received(900, lost=100, drain="quiet"),
                3: received(1000),
            }
        ),
        dead={4},
        last_words={4: 400},
    )
    store.add_step(StepResult(1, PLAN, "ok", figures(o)), o)
    (publisher, *subscribers) = store.clients(1)
    sums = dict.fromkeys(("in_window", "late", "undrained", "unknown", "lost"), 0)
    for row in subscribers:
        got = row["messages"] if row["state"] == "ok" else row["more"].get("last_word", 0)
        in_window = row["in_window"] if row["state"] == "ok" else got
        undrained = row["undrained"] or 0
        rest = publisher["in_window"] - got - undrained
        sums["in_window"] += in_window
        sums["late"] += got - in_window
        sums["undrained"] += undrained
        sums["unknown" if row["more"].get("drain") == "deadline" else "lost"] += rest
    stored_figures = store.results()[0].figures
    assert sums == {name: stored_figures[name] for name in sums}
    assert all(sums.values())


def test_events_are_kept_in_order(store: RunStore) -> None:
    store.add_event(SystemFact("version", "4.3"))
    store.add_event(ClientError(12, "no route"), epoch=3)
    assert [event[1:] for event in store.events()] == [
        (None, "fact", "version: 4.3"),
        (3, "client_error", "client 12: no route"),
    ]


def test_a_step_is_stored_whole_or_not_at_all(store: RunStore) -> None:
    o = observed()
    table = table_of({1: received(5), 2: received(5)})
    broken = replace(
        o, subscriber_reports=replace(table, system_bytes=np.array([0, 1]), system=np.array([123], np.uint8))
    )
    with pytest.raises(msgspec.DecodeError):
        store.add_step(StepResult(1, PLAN, "ok"), broken)
    assert store.results() == []
    assert store.clients(1) == []
    stored(store)
    assert len(store.results()) == 1


def test_a_step_cannot_be_stored_twice(store: RunStore) -> None:
    stored(store)
    with pytest.raises(HydraError, match="already"):
        stored(store)
    assert len(store.clients(1)) == 4


def test_a_second_run_in_the_same_directory_is_refused(store: RunStore) -> None:
    with pytest.raises(RunDirectoryError, match=r"already holds a run.*--out") as e:
        RunStore.create(store.directory, {})
    assert e.value.exit_code == EXIT_USAGE


def test_a_directory_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="holds no run"):
        RunStore.open(tmp_path)


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b""])
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / DATABASE).write_bytes(content)
    with pytest.raises(RunDirectoryError, match=DATABASE):
        RunStore.open(tmp_path)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="cannot write"):
        RunStore.create(tmp_path / "file" / "run", {})


def test_a_full_disk_is_a_clear_error_and_keeps_what_was_there(store: RunStore) -> None:
    stored(store)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count={pages}")
    o = observed()
    many = set(range(1, 3000))
    with pytest.raises(HydraError, match=r"full.*everything measured before is kept"):
        store.add_step(StepResult(2, PLAN, "ok"), replace(o, subscribers=many))
    assert [r.epoch for r in store.results()] == [1]


def test_a_reader_sees_committed_steps_while_the_run_goes_on(store: RunStore) -> None:
    stored(store)
    with RunStore.open(store.directory) as reader:
        assert len(reader.results()) == 1
        store.add_step(StepResult(2, PLAN, "failed", {}, "x"))
        assert len(reader.results()) == 2
        with pytest.raises(HydraError, match="cannot write"):
            reader.add_event(SystemFact("x", "y"))


WRITER = """
import sys
sys.path.append(sys.argv[2])
from pathlib import Path
from hydra.model import StepResult
from hydra.results.store import RunStore
from tests.results.test_store import PLAN, observed, stored
store = RunStore.create(Path(sys.argv[1]), {})
for epoch in range(1, 10_000):
    stored(store, epoch)
    print(epoch, flush=True)
"""


def test_a_killed_writer_loses_no_committed_step(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", WRITER, str(tmp_path / "run"), str(root)]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) >= 20:
                break
        os.kill(writer.pid, signal.SIGKILL)
        told = [20, *map(int, writer.stdout.read().split())]
    with RunStore.open(tmp_path / "run", writable=True) as store:
        found = [r.epoch for r in store.results()]
        assert found == list(range(1, found[-1] + 1))
        assert found[-1] >= told[-1]
        assert all(len(store.clients(e)) == 4 for e in found)
        stored(store, found[-1] + 1)
    assert sqlite3.connect(tmp_path / "run" / DATABASE).execute("PRAGMA integrity_check").fetchone() == ("ok",)
