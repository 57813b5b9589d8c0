"""The run's database: whole steps or nothing, and the same values back."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

import msgspec
import numpy as np
import pytest
from pyroaring import BitMap

from hydra.errors import EXIT_USAGE, HydraError, RunDirectoryError
from hydra.events.group_events import ClientError, Evicted
from hydra.events.run_events import SystemFact
from hydra.events.warnings import CleanupFailed
from hydra.measure.column import (
    Column,
    Differences,
    LossBursts,
    LossEvidence,
    ReportColumn,
    SystemColumns,
    UnlistedMessages,
    Unsteadiness,
)
from hydra.measure.disturbance import Disturbance, Disturbances
from hydra.measure.latency import merge_histograms
from hydra.measure.step_result import StepFigures, StepResult
from hydra.measure.verdict import Causes
from hydra.model import FactChange, Figure, Histogram, LedgerCounts
from hydra.store.client_rows import client_figures
from hydra.store.database import DATABASE, RunStore
from hydra.store.run_folders import database, write_whole
from hydra.wire.subscriber_table import table_of
from tests.measure.reports import received
from tests.results.stored_steps import PLAN, observed, stored, with_clocks
from tests.suite.figures import figures


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with RunStore.create(tmp_path / "run", {"scenario": {"name": "x"}, "command_line": ["hydra", "run"]}) as it:
        yield it


def test_results_come_back_as_they_were_in_order(store: RunStore) -> None:
    one = stored(store)
    two = StepResult(2, PLAN, "skipped", StepFigures(), "needs 9 GB")
    store.add_step(two)
    assert store.results() == [one, two]
    assert list(store.results()[0].figures) == list(one.figures)


def test_evidence_comes_back_as_objects(store: RunStore) -> None:
    evidence: dict[str, Figure] = {
        "verdict": Causes(("server", "network")),
        "client_loss_unlisted": UnlistedMessages(("publisher",)),
        "bursts_s": LossBursts((0.01234, 1.0, 2e-05)),
        "rest_bursts_s": LossBursts(),
        "loss_evidence": LossEvidence(10.0, 3, 0.25, 0.03125, 0.125, 0.5, 7.0),
        "unsteady": Differences((Unsteadiness("beginning", 3, -0.25), Unsteadiness("stop", 2, -1.0, 1.5))),
        "disturbed": Disturbances((Disturbance("h", 25.2, (("stress", 25.0),), changed=(FactChange("a", "b", "c"),)),)),
    }
    store.add_step(StepResult(1, PLAN, "ok", StepFigures.of(evidence)))
    assert store.results()[0].figures == evidence


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
    unit, text = known["blocked_s"]
    assert (unit, "waited for a full queue" in text) == ("s", True)


def test_the_database_says_what_the_systems_own_columns_are(tmp_path: Path) -> None:
    stalls = ReportColumn("stalls", "", "how often it stalled", role="publisher", key="stalls")
    own = SystemColumns(batch=Column("in_flight", "messages", "sent before an answer"), reported=[stalls])
    with RunStore.create(tmp_path / "r", {}, own), contextlib.closing(sqlite3.connect(tmp_path / "r" / DATABASE)) as db:
        known = dict(db.execute("SELECT name, help FROM columns").fetchall())
    assert (known["in_flight"], known["stalls"]) == ("sent before an answer", "how often it stalled")
    assert "burst" not in known


def test_the_caller_goes_on_with_other_work_between_the_rows_of_many(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hydra.store.database.AT_ONCE", 3)
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
    assert [(r["client"], r["role"], r["state"], r["messages"], r["agent"]) for r in rows] == [
        (0, "publisher", "ok", 1000, "a"),
        (1, "subscriber", "ok", 1000, "b"),
        (2, "subscriber", "ok", 900, "b"),
        (3, "subscriber", "dead", None, ""),
    ]
    assert rows[0]["more"]["blocked_ns"] == 5
    assert client_figures(rows)[0] == {"records": 1000, "records_per_sec": 100.0, "mb_per_sec": 2400 / 2**20}
    its = client_figures(rows)
    assert its[3] == {}
    assert (its[1]["messages"], its[1]["mb_consumed"]) == (1000, 24_000 / 2**20)
    lossy = rows[2]
    assert (lossy["cohort"], lossy["in_window"], lossy["missing"], lossy["p99_us"]) == (1, 890, 100, 50)
    assert (lossy["duplicates"], lossy["reordered"], lossy["extra"]) == (2, 3, 4)
    assert lossy["missing_ranges"] == {"0": [[5, 104]]}
    assert lossy["more"] == {"absent": [[1, 2]], "felt": False, "figures": its[2]}


def test_ranges_beyond_what_is_stored_are_flagged(store: RunStore) -> None:
    ranges = [(k * 10, k * 10) for k in range(100)]
    many = received(900, ledgers=[LedgerCounts(0, 900, 900, 100, ranges)])
    store.add_step(StepResult(1, PLAN, "ok"), replace(observed(), subscriber_reports=table_of({1: many})))
    row = store.clients(1)[1]
    assert (len(row["missing_ranges"]["0"]), row["truncated"], row["missing"]) == (32, 1, 100)


def test_histograms_and_samples_come_back(store: RunStore) -> None:
    stored(store)
    expected = merge_histograms(observed())
    assert store.histogram(1) == expected.latency
    assert store.histogram(1, "lag") == expected.lag
    assert store.histogram(1, "cohort_latency") == expected.cohort_latency
    assert store.histogram(9).counts == []
    assert store.host_samples(1) == {"h": observed().hosts["h"]}
    assert store.host_of(1) == observed().host_of
    assert store.threads(1) == observed().threads
    assert (store.host_samples(9), store.host_of(9), store.threads(9)) == ({}, {}, {})


def test_clocks_and_latencies_below_zero_come_back(store: RunStore) -> None:
    late = received(1000, latency=Histogram([-3001, 2], -3500, -3000))
    store.add_step(StepResult(1, PLAN, "ok"), with_clocks())
    store.add_step(StepResult(2, PLAN, "ok"), replace(observed(), subscriber_reports=table_of({1: late})))
    assert (store.clocks(1), store.clocks(2)) == (with_clocks().clocks, {})
    assert store.histogram(1) == merge_histograms(with_clocks()).latency
    assert (store.clients(1)[1]["p50_us"], store.clients(1)[1]["max_us"]) == (50, 50)
    assert store.histogram(2) == late.latency, "all of them"


@pytest.mark.parametrize("repeat", [1, 3])
def test_steps_of_repeated_rows_come_back_with_their_histograms(tmp_path: Path, repeat: int) -> None:
    with RunStore.create(tmp_path / "run", {"scenario": {"sweep": {"repeat": repeat}}}) as store:
        stored(store)
        store.add_step(StepResult(2, PLAN, "failed", StepFigures(), "x"))
        measured, failed = store.results()
    expected = merge_histograms(observed())
    assert measured.histograms == ({"latency": expected.latency, "lag": expected.lag} if repeat > 1 else {})
    assert failed.histograms == {}


def test_what_became_of_every_message_of_a_client_derives_from_its_row(store: RunStore) -> None:
    """Not received and not waiting is unknown where the drain ended at its deadline, and lost where it did not."""
    reports = {
        1: received(700, late=100, lost=300, undrained=250, drain="deadline"),
        2: received(900, lost=100, drain="quiet"),
        3: received(1000),
    }
    o = replace(observed(), subscribers=range(1, 6), subscriber_reports=table_of(reports))
    o = replace(o, dead={4}, last_words={4: 400})
    store.add_step(StepResult(1, PLAN, "ok", figures(o)), o)
    (publisher, *subscribers) = store.clients(1)
    sums: Counter[str] = Counter()
    for row in subscribers:
        reported, undrained = row["state"] == "ok", row["undrained"] or 0
        got = row["messages"] if reported else row["more"].get("last_word", 0)
        in_window = row["in_window"] if reported else got
        outcome = "unknown" if row["more"].get("drain") == "deadline" else "lost"
        rest = publisher["in_window"] - got - undrained
        sums += Counter({"in_window": in_window, "late": got - in_window, "undrained": undrained, outcome: rest})
    stored_figures = store.results()[0].figures
    assert sums == {name: stored_figures[name] for name in ("in_window", "late", "undrained", "unknown", "lost")}


def test_events_are_kept_in_order(store: RunStore) -> None:
    store.add_event(SystemFact("version", "4.3"))
    store.add_event(ClientError(12, "no route"), epoch=3)
    messages = [(None, "fact", "version: 4.3"), (3, "client_error", "client 12: no route")]
    assert [(event.epoch, event.kind, event.text) for event in store.events()] == messages


def test_an_event_is_stored_as_data_beside_its_text(store: RunStore) -> None:
    happened = (CleanupFailed("t-1", "h:1", "x removes it"), Evicted("g", BitMap([1, 2, 3, 7]), "did not answer"))
    for event in happened:
        store.add_event(event)
    behind, evicted = store.events()
    assert [event.data for event in (behind, evicted)] == [event.data() for event in happened]
    assert (behind.kind, behind.category, behind.data.remedy) == ("left_behind", "warning", "x removes it")
    assert evicted.data.fields == {"group": "g", "clients": [[1, 3], [7, 7]], "why": "did not answer"}
    kinds = store._db.execute("SELECT kind, detail FROM events").fetchall()
    assert kinds == [(event.category, str(event)) for event in happened]


def test_a_step_is_stored_once_whole_or_not_at_all(store: RunStore) -> None:
    table = table_of({1: received(5), 2: received(5)})
    broken = table.changed(system_bytes=np.array([0, 1]), system=np.array([123], np.uint8))
    with pytest.raises(msgspec.DecodeError):
        store.add_step(StepResult(1, PLAN, "ok"), replace(observed(), subscriber_reports=broken))
    assert (store.results(), store.clients(1)) == ([], [])
    stored(store)
    with pytest.raises(HydraError, match="already"):
        stored(store)
    assert (len(store.results()), len(store.clients(1))) == (1, 4)


def test_a_second_run_in_the_same_directory_is_refused(store: RunStore) -> None:
    with pytest.raises(RunDirectoryError, match=r"already holds a run.*--out") as e:
        RunStore.create(store.directory, {})
    assert e.value.exit_code == EXIT_USAGE


def test_a_directory_without_a_run_or_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="holds no run"):
        RunStore.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="cannot write"):
        RunStore.create(tmp_path / "file" / "run", {})


def test_a_folder_in_the_place_of_a_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.db").mkdir()
    with pytest.raises(RunDirectoryError, match=r"holds no run: run\.db is no file"):
        database(tmp_path)


def test_a_full_disk_is_a_clear_error_and_keeps_what_was_there(store: RunStore) -> None:
    stored(store)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(HydraError, match=r"full.*everything measured before is kept"):
        store.add_step(StepResult(2, PLAN, "ok"), replace(observed(), subscribers=range(1, 3000)))
    assert [r.epoch for r in store.results()] == [1]


class Interrupted:
    """A connection to which Ctrl-C comes once, before or after a statement."""

    def __init__(self, db: sqlite3.Connection, statement: str, after: bool) -> None:
        self._db = db
        self._statement = statement
        self._after = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        hit = bool(self._statement) and statement.startswith(self._statement)
        if hit:
            self._statement = ""
            if not self._after:
                raise KeyboardInterrupt
        result = self._db.execute(statement, *values)
        if hit:
            raise KeyboardInterrupt
        return result


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("statement", ["BEGIN", "INSERT INTO steps", "COMMIT"])
def test_an_interrupt_within_a_transaction_leaves_the_store_writable(
    store: RunStore, statement: str, after: bool
) -> None:
    store._db = cast(sqlite3.Connection, Interrupted(store._db, statement, after))
    with pytest.raises(KeyboardInterrupt):
        store.add_step(StepResult(1, PLAN, "ok"))
    with RunStore.open(store.directory, writable=True) as another:  # nothing is left locked
        another.set_meta("error", "")
    store.set_meta("ended", "interrupted")
    assert store.meta("ended") == "interrupted"
    assert len(store.results()) == (statement == "COMMIT" and after)


def test_an_interrupt_at_the_end_of_a_transaction_leaves_the_store_writable(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("hydra.store.database._Transaction.__exit__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.add_step(StepResult(1, PLAN, "ok"))
    store.set_meta("ended", "interrupted")
    assert (store.results(), store.meta("ended")) == ([], "interrupted")


def test_a_transaction_within_another_is_refused_and_nothing_of_it_is_kept(store: RunStore) -> None:
    o = observed()
    with pytest.raises(RuntimeError, match="not ended"):
        store.add_step(StepResult(1, o.plan, "ok", figures(o)), o, None, lambda: store.set_meta("ended", "early"))
    assert (store.results(), store.meta("ended")) == ([], None)
    store.add_step(StepResult(1, PLAN, "ok"))
    assert len(store.results()) == 1


def test_a_reader_sees_committed_steps_while_the_run_goes_on(store: RunStore) -> None:
    stored(store)
    with RunStore.open(store.directory) as reader:
        assert len(reader.results()) == 1
        store.add_step(StepResult(2, PLAN, "failed", StepFigures(), "x"))
        assert len(reader.results()) == 2
        with pytest.raises(HydraError, match="cannot write"):
            reader.add_event(SystemFact("x", "y"))


WRITER = """
import sys
sys.path.append(sys.argv[2])
from pathlib import Path
from hydra.measure.step_result import StepResult
from hydra.store.database import RunStore
from tests.results.stored_steps import PLAN, observed, stored
store = RunStore.create(Path(sys.argv[1]), {})
for epoch in range(1, 10_000):
    stored(store, epoch)
    print(epoch, flush=True)
"""


@pytest.mark.tier("test")
def test_a_killed_writer_loses_no_committed_step(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", WRITER, str(tmp_path / "run"), str(root)]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) >= 5:
                break
        os.kill(writer.pid, signal.SIGKILL)
        output = [5, *map(int, writer.stdout.read().split())]
    with RunStore.open(tmp_path / "run", writable=True) as store:
        found = [r.epoch for r in store.results()]
        assert found == list(range(1, found[-1] + 1))
        assert found[-1] >= output[-1]
        assert all(len(store.clients(e)) == 4 for e in found)
        stored(store, found[-1] + 1)
        assert store._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_file_is_written_through_a_link_which_stays(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "page.html"
    link.symlink_to("there/page.html")
    assert write_whole(link, "text", "") == link
    assert link.is_symlink()
    assert (tmp_path / "there" / "page.html").read_text() == "text"
