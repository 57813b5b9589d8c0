"""The database of a run directory: one SQLite file with all raw facts, written step by step.

A step and everything that belongs to it is one transaction, so a killed run has complete steps only. The database is
in WAL mode with ``synchronous=NORMAL``: a committed step survives a kill of the process at any moment, because the
kernel has the data. A power cut may lose the last steps, but not the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple
from itertools import islice
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

import msgspec

from hydra.errors import HydraError, RunDirectoryError, UnreadableRunError
from hydra.events import group_events, run_events, warnings  # noqa: F401  # they register the kinds of stored events
from hydra.events.event import Event, StoredEvent
from hydra.measure import latency
from hydra.measure.column import SystemColumns
from hydra.measure.latency import MERGED_IN_REPEATS, MergedHistograms, merge_histograms
from hydra.measure.observation import Observation
from hydra.measure.step_result import StepFigures, StepResult, hidden_columns, step_columns
from hydra.model import (
    AgentClock,
    Histogram,
    HostSample,
    MachineActivity,
    MachineRecord,
    StepPlan,
    StepStatus,
    ThreadSample,
    TimeSeriesFacts,
    TimeSeriesInterval,
)
from hydra.store import sample_tables
from hydra.store.client_rows import AT_ONCE, COLUMNS, client_rows, compact
from hydra.store.run_folders import DATABASE as DATABASE
from hydra.store.run_folders import database, refuse_run_in
from hydra.store.sample_tables import FORMAT, SCHEMA
from hydra.store.stored_scenario import plan_decoder

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")

BUSY_S: Final = 10.0
"""How long a reader, such as a report of a running run, may block the writer before this is an error."""

CLIENTS_KEY: Final = "clients"
"""The key for what clients reported in their hello: ``role``, ``implementation`` and ``versions`` of each kind."""

SERVERS_KEY: Final = "servers"
"""The key for what was found out about the servers (``hydra.model.ServerFacts``), each different finding once."""

MACHINES_KEY: Final = "machines"
"""The key for the record of each host of the run, by its name (``hydra.model.MachineRecord``)."""
_ROOM_BYTES: Final = 65_536
"""SQLite's reader writes an index of the log beside the database; it has half this size at least."""
ENDED_KEY: Final = "ended"
"""The key for how the run ended: ``FINISHED``, ``INTERRUPTED`` or ``failed``; "" while it is running."""
FINISHED: Final = "finished"
"""How a run ended that has measured everything."""
INTERRUPTED: Final = "interrupted"
"""How a run ended that Ctrl-C or a signal has ended."""
ERROR_KEY: Final = "error"
"""The key for the reason of a failure, one line; "" if the run did not fail."""
_OFFERED_AGAIN: Final = "offered_again"
"""The key for the epochs of failed steps that a resumed run measures again."""

_HISTOGRAMS: Final = ("latency", "cohort_latency", "lag", "ack")


_DAMAGED: Final = (
    sqlite3.Error, msgspec.MsgspecError, zlib.error, ValueError, TypeError, KeyError, IndexError, AttributeError,
    OverflowError,
)  # fmt: skip
"""The exceptions that reading a damaged database may raise."""


class _Transaction:
    """Stores all that is written within it, or nothing and raises an error that names a remedy.

    The context manager is no generator: an interrupt between two statements of a generator leaves a transaction open,
    which the next one undoes.

    Args:
        db: the connection.
        path: the file that errors name.
        writing: the caller holds it within the transaction.

    Raises:
        RuntimeError: a transaction is begun within another one.
    """

    def __init__(self, db: sqlite3.Connection, path: Path, writing: threading.Lock) -> None:
        self._db = db
        self._path = path
        self._writing = writing

    def __enter__(self) -> None:
        if self._writing.locked():
            raise RuntimeError(f"a transaction of {self._path} is not ended yet")
        self._undo()
        self._execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None:
            self._execute("COMMIT")
            return
        self._undo()
        if isinstance(error, sqlite3.IntegrityError):
            raise HydraError(f"{self._path} has this step already: {error}") from error
        if isinstance(error, sqlite3.Error):
            raise self._unwritable(error) from error

    def _execute(self, statement: str) -> None:
        try:
            self._db.execute(statement)
        except sqlite3.Error as e:
            self._undo()
            raise self._unwritable(e) from e
        except KeyboardInterrupt:
            self._undo()
            raise

    def _undo(self) -> None:
        # A full disk may have rolled back already.
        if self._db.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")

    def _unwritable(self, error: sqlite3.Error) -> HydraError:
        return HydraError(
            f"cannot write {self._path}: {error}",
            "free some space or check the permissions; everything measured before is kept",
        )


class RunStore:
    """The store of a run; made by :meth:`create` or :meth:`open`, closed as a context manager.

    Every method raises HydraError if the disk is full or fails; steps that were committed before are kept.

    Attributes:
        directory: the run directory.
        redact: hides the run's secrets in the text of events.
    """

    def __init__(self, directory: Path, connection: sqlite3.Connection) -> None:
        self.directory = directory
        self.redact: Callable[[str], str] = str
        self._db = connection
        # A lock, because no interrupt can leave it held after its block.
        self._writing = threading.Lock()

    # --- opening -----------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, directory: Path, metadata: Mapping[str, object], system: SystemColumns | None = None) -> RunStore:
        """Makes the run directory and its database.

        Args:
            directory: the run directory, which may exist, but must hold no run.
            metadata: facts about the run (``scenario`` redacted: secrets are never stored; versions, hosts, limits,
                command line), JSON values by key.
            system: the columns that the system adds; the meanings of all columns are stored.

        Raises:
            RunDirectoryError: the directory holds a run already, or cannot be written.
        """
        path = directory / DATABASE
        refuse_run_in(directory)
        # The file gets its name when it is complete: a run.db without its scenario would be no run, but block one.
        draft = directory / f"{DATABASE}.new"
        made = not directory.exists()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as db:
                db.executescript(f"BEGIN;{SCHEMA}PRAGMA user_version={FORMAT};")
                columns = (*step_columns(system=system), *hidden_columns())
                meanings = [(column.name, column.unit, column.help) for column in columns]
                db.executemany("INSERT INTO columns VALUES (?, ?, ?)", meanings)
                facts = [(key, _to_json(value)) for key, value in metadata.items()]
                db.executemany("INSERT INTO run VALUES (?, ?)", facts)
                db.execute("COMMIT")
            draft.rename(path)
        except (OSError, sqlite3.Error) as e:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
                if made:
                    directory.rmdir()
            raise RunDirectoryError(
                f"cannot write the run directory {directory}: {e}", "choose another with --out"
            ) from e
        return cls(directory, _connect(path, writable=True))

    @classmethod
    def open(cls, directory: Path, writable: bool = False) -> RunStore:
        """Opens an existing run.

        Raises:
            RunDirectoryError: there is no run, or it has another format.
        """
        return cls(directory, _connect(database(directory), writable))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; may be called twice."""
        self._db.close()

    # --- writing -----------------------------------------------------------------------------------------------

    def set_meta(self, key: str, value: object) -> None:
        """Stores an entry of the run's metadata; replaces an older value."""
        with self._transaction(), self._writing:
            self._db.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, _to_json(value)))

    def add_step(
        self,
        result: StepResult,
        observation: Observation | None = None,
        histograms: MergedHistograms | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Commits a step with everything that belongs to it, as one transaction.

        Args:
            result: plan, status and figures of the step.
            observation: the raw reports and samples; None for a step that was skipped or never ran.
            histograms: the merged histograms of the observation, if they were computed already.
            meanwhile: called after every few thousand clients, because a million clients take half a minute; it must
                not store anything.
        """
        o = observation
        start_ns, stop_ns = o.window_ns if o else (0, 0)
        plan, figures = _to_json(result.plan), _to_json(result.figures.cells)
        step = (result.epoch, result.status, result.reason, plan, figures, start_ns, stop_ns)
        with self._transaction(), self._writing:
            self._db.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?)", step)
            if o is None:
                return
            insert = f"INSERT INTO clients ({','.join(COLUMNS)}) VALUES ({','.join('?' * len(COLUMNS))})"  # noqa: S608  # names
            rows = client_rows(result.epoch, o)
            while some := list(islice(rows, AT_ONCE)):
                self._db.executemany(insert, some)
                meanwhile()
            histograms = histograms or merge_histograms(o)
            for name in _HISTOGRAMS:
                h: Histogram = getattr(histograms, name)
                if h.counts:
                    row = (result.epoch, name, h.min_us, h.max_us, latency.encode(h), compact(latency.below_zero(h)))
                    self._db.execute("INSERT INTO histograms VALUES (?, ?, ?, ?, ?, ?)", row)
            servers = [(result.epoch, server, _to_json(dict(figures))) for server, figures in o.servers.items()]
            self._db.executemany("INSERT INTO servers VALUES (?, ?, ?)", servers)
            clocks = [(result.epoch, agent, *astuple(clock)) for agent, clock in o.clocks.items()]
            self._db.executemany("INSERT INTO clocks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", clocks)
            sample_tables.add(self._db, result.epoch, o)

    def begin_time_series(self, epoch: int, plan: StepPlan, facts: TimeSeriesFacts) -> None:
        """Stores the plan and the facts of a step's time series; replaces earlier ones."""
        with self._transaction(), self._writing:
            sample_tables.begin_series(self._db, epoch, plan, facts)

    def add_seconds(self, epoch: int, intervals: Iterable[TimeSeriesInterval]) -> None:
        """Adds counts of intervals of a step to their stored counts."""
        with self._transaction(), self._writing:
            for interval in intervals:
                stored = sample_tables.intervals_of(self._db, epoch, interval.begin_s)
                sample_tables.put_intervals(
                    self._db, epoch, [sample_tables.added(stored[0], interval) if stored else interval]
                )

    def add_lost(self, epoch: int, lost: Mapping[int, int]) -> None:
        """Stores how many of the copies due in each interval were lost, by the interval's begin."""
        with self._transaction(), self._writing:
            sample_tables.put_lost(self._db, epoch, lost)

    def offer_again(self, epochs: Iterable[int]) -> None:
        """Leaves failed steps out of :meth:`results` from now on; they stay stored."""
        self.set_meta(_OFFERED_AGAIN, sorted({*self.meta(_OFFERED_AGAIN, []), *epochs}))

    def add_event(self, event: Event, epoch: int | None = None) -> None:
        """Stores an event that happened now, in the step with this epoch or between steps."""
        with self._transaction(), self._writing:
            data = _to_json(self._redacted(msgspec.to_builtins(event.data())))
            self._db.execute(
                "INSERT INTO events (time_ns, epoch, kind, detail, data) VALUES (?, ?, ?, ?, ?)",
                (time.time_ns(), epoch, event.category, self.redact(str(event)), data),
            )

    def _redacted(self, value: object) -> object:
        """A JSON value with the run's secrets hidden in every text."""
        match value:
            case str():
                return self.redact(value)
            case dict():
                return {name: self._redacted(inner) for name, inner in value.items()}
            case list() | tuple():
                return [self._redacted(inner) for inner in value]
            case _:
                return value

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db, self.directory / DATABASE, self._writing)

    # --- reading -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Turns every error about stored data into one kind of error.

        Raises:
            UnreadableRunError: the database is damaged, or holds data that no Hydra stores.
        """
        try:
            yield
        except _DAMAGED as e:
            what = " ".join(str(e).split()) or "unknown"
            raise _unreadable(
                "cannot read ",
                self.directory / DATABASE,
                f": {what} ({type(e).__name__})",
                "the file is damaged, or of another version of Hydra",
            ) from e

    def meta(self, key: str, default: Any = None) -> Any:
        """An entry of the run's metadata as it was stored."""
        with self.reading():
            row = self._db.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
            return default if row is None else json.loads(row[0])

    def metadata(self) -> dict[str, Any]:
        """The run's metadata by key."""
        with self.reading():
            return {key: json.loads(value) for key, value in self._db.execute("SELECT key, value FROM run")}

    def last_epoch(self) -> int:
        """The highest epoch with stored data, 0 if there is none."""
        with self.reading():
            last = int(self._db.execute("SELECT coalesce(max(epoch), 0) FROM steps").fetchone()[0])
            return max([last, *sample_tables.epochs_with_series(self._db)])

    def course(self, epoch: int) -> tuple[StepPlan, TimeSeriesFacts, list[TimeSeriesInterval]] | None:
        """Plan, facts and time series of a step, even of one that never ended; None if none was stored."""
        with self.reading():
            found = sample_tables.facts_of(self._db, epoch, self._plans)
            return None if found is None else (*found, sample_tables.intervals_of(self._db, epoch))

    def time_series_epochs(self) -> list[int]:
        """The epochs of the steps whose time series was stored."""
        with self.reading():
            return sample_tables.epochs_with_series(self._db)

    def window_ns(self, epoch: int) -> tuple[int, int]:
        """The start and the end of a step's window (ns since 1970); zeros if it has none."""
        with self.reading():
            row = self._db.execute("SELECT start_ns, stop_ns FROM steps WHERE epoch = ?", (epoch,)).fetchone()
            return (0, 0) if row is None else (int(row[0]), int(row[1]))

    @property
    def _plans(self) -> msgspec.json.Decoder[StepPlan]:
        return plan_decoder(str(self.meta("scenario", {}).get("system")))

    def results(self) -> list[StepResult]:
        """Every committed step in order, from which a sweep continues. Repeated steps include their histograms.

        Failed steps that are to be measured again are left out.
        """
        with self.reading():
            scenario = self.meta("scenario", {})
            repeated = scenario.get("sweep", {}).get("repeat", 1) > 1
            plans, left_out = self._plans, set(self.meta(_OFFERED_AGAIN, []))
            rows = self._db.execute("SELECT epoch, plan, status, figures, reason FROM steps ORDER BY epoch").fetchall()
            return [
                StepResult(
                    epoch,
                    plans.decode(plan),
                    msgspec.convert(status, StepStatus),
                    StepFigures.of_json(msgspec.json.decode(figures)),
                    msgspec.convert(reason, str),
                    {name: h for name in MERGED_IN_REPEATS if (h := self.histogram(epoch, name)).counts}
                    if repeated
                    else {},
                )
                for epoch, plan, status, figures, reason in rows
                if epoch not in left_out
            ]

    def clients(self, epoch: int) -> list[dict[str, Any]]:
        """The rows of a step's clients, by the names of ``clients.COLUMNS``; JSON columns decoded."""
        result = []
        with self.reading():
            query = f"SELECT {','.join(COLUMNS)} FROM clients WHERE epoch = ? ORDER BY client"  # noqa: S608  # names
            for values in self._db.execute(query, (epoch,)):
                row: dict[str, Any] = dict(zip(COLUMNS, values, strict=True))
                for name in ("missing_ranges", "more"):
                    row[name] = json.loads(row[name]) if row[name] else {}
                result.append(row)
        return result

    def role_sums(self, epoch: int) -> dict[str, dict[str, float]]:
        """Sums over a step's clients with a report, by role, computed in the database.

        The sums are ``clients``, ``messages``, ``bytes`` and ``cpu_s``; ``max_rss_bytes`` is that of the largest
        client.
        """
        with self.reading():
            rows = self._db.execute(
                "SELECT role, count(*), sum(messages), sum(bytes), sum(cpu_user_s + cpu_system_s), max(max_rss_bytes) "
                "FROM clients WHERE epoch = ? AND messages IS NOT NULL GROUP BY role",
                (epoch,),
            )
            names = ("clients", "messages", "bytes", "cpu_s", "max_rss_bytes")
            return {role: {n: float(v or 0) for n, v in zip(names, sums, strict=True)} for role, *sums in rows}

    def histogram(self, epoch: int, name: str = "latency") -> Histogram:
        """A merged histogram of a step; empty if nothing was counted.

        ``name`` is ``latency``, ``cohort_latency``, ``lag`` or ``ack``.
        """
        with self.reading():
            row = self._db.execute("SELECT * FROM histograms WHERE epoch = ? AND name = ?", (epoch, name)).fetchone()
            if row is None:
                return Histogram()
            _, _, min_us, max_us, hdr, below = row
            return latency.decode(hdr, min_us, max_us, json.loads(below) if below else ())

    def servers(self, epoch: int) -> dict[str, dict[str, float]]:
        """Figures of each server in a step: rates and means by name (``measure/observation.py``)."""
        with self.reading():
            rows = self._db.execute("SELECT server, figures FROM servers WHERE epoch = ? ORDER BY rowid", (epoch,))
            return {server: msgspec.json.decode(figures, type=dict[str, float]) for server, figures in rows}

    def clocks(self, epoch: int) -> dict[str, AgentClock]:
        """The clock of each agent's host that a step used, by agent."""
        with self.reading():
            rows = self._db.execute("SELECT * FROM clocks WHERE epoch = ? ORDER BY agent", (epoch,))
            return {
                agent: AgentClock(offset_ns, rate_ppb, error_ns, rtt_min_ns, bool(same_host), jumps)
                for _, agent, offset_ns, rate_ppb, error_ns, rtt_min_ns, same_host, jumps in rows
            }

    def host_samples(self, epoch: int) -> dict[str, list[HostSample]]:
        """A step's samples by host, oldest first."""
        with self.reading():
            return sample_tables.of_hosts(self._db, epoch)

    def host_of(self, epoch: int) -> dict[str, str]:
        """The host of each agent, as :meth:`host_samples` names it."""
        with self.reading():
            return sample_tables.host_of(self._db, epoch)

    def threads(self, epoch: int) -> dict[str, list[ThreadSample]]:
        """Samples of the groups' busiest threads, oldest first, by agent."""
        with self.reading():
            return sample_tables.of_threads(self._db, epoch)

    def machines(self) -> dict[str, MachineRecord]:
        """The record of each host of the run, by its name."""
        stored = self.meta(MACHINES_KEY, {})
        with self.reading():
            return msgspec.convert(stored, dict[str, MachineRecord])

    def machine_activities(self, epoch: int) -> dict[str, MachineActivity]:
        """What happened on each host in a step apart from the run."""
        with self.reading():
            return sample_tables.of_machines(self._db, epoch)

    def ask(
        self,
        question: Callable[Concatenate[sqlite3.Connection, Parameters], Answer],
        *about: Parameters.args,
        **more: Parameters.kwargs,
    ) -> Answer:
        """The result of a function that reads the database, such as those of :mod:`hydra.store.subscriber_losses`."""
        with self.reading():
            return question(self._db, *about, **more)

    def events(self) -> list[StoredEvent]:
        """The events of the run, oldest first."""
        with self.reading():
            rows = self._db.execute("SELECT time_ns, epoch, data FROM events ORDER BY id")
            return msgspec.convert([(*when, msgspec.json.decode(data)) for *when, data in rows], list[StoredEvent])


def _connect(path: Path, writable: bool) -> sqlite3.Connection:
    """A connection to a run's database.

    Raises:
        UnreadableRunError: the file is no run of this format, or cannot be opened.
    """
    db: sqlite3.Connection | None = None
    try:
        # A reader of WAL makes a file next to the database. If it may not, no process writes the database either.
        fixed = not writable and not os.access(path.parent, os.W_OK)
        name = f"{path.absolute().as_uri()}?{'immutable=1' if fixed else 'mode=rw'}"
        db = sqlite3.connect(name, uri=True, timeout=BUSY_S, isolation_level=None)
        (found,) = db.execute("PRAGMA user_version").fetchone()
        if not writable:
            db.execute("PRAGMA query_only=ON")
        elif found == FORMAT:  # a run of another format stays as it is
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
    except sqlite3.Error as e:
        if db:
            db.close()
        remedy = "check that the file is a run of Hydra and writable"
        with contextlib.suppress(OSError):
            if shutil.disk_usage(path.parent).free < _ROOM_BYTES:
                remedy = "its file system is full: free some space"
        raise _unreadable("cannot open ", path, f": {e}", remedy) from e
    if found != FORMAT:
        db.close()
        formats = f" has {f'format {found}' if found else 'no format number'}, and this Hydra reads format {FORMAT}"
        raise _unreadable("", path, formats, "measure again, or use the version of Hydra that made this run")
    return db


def _unreadable(before: str, path: Path, after: str, remedy: str) -> UnreadableRunError:
    """The error about a database: the text has its path, the brief text only its name."""
    return UnreadableRunError(f"{before}{path}{after}", f"{before}{path.name}{after}", remedy)


def _to_json(value: object) -> str:
    return msgspec.json.encode(value).decode()
