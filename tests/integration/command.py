"""Runs the ``hydra`` command as a user would, and waits for what it should do."""

from __future__ import annotations

import contextlib
import csv
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from hydra.events.event import Event
from hydra.results.store import DATABASE

Hydra = [sys.executable, "-m", "hydra.cli"]
LIFELINE_S = 10.0
"""Within this everything below a command has ended that was killed. It takes 2 s at most on a machine with time for it;
whoever did not notice by the lifeline would stay for 30 s or for ever."""


def wait_until(condition: Callable[[], object], deadline_s: float, what: str) -> None:
    """Polls until the condition holds; fails the test with ``what`` after the deadline."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"after {deadline_s} s still waiting for {what}"
        time.sleep(0.02)


def hydra(
    *arguments: object,
    expect: int | tuple[int, ...] = 0,
    cwd: Path | None = None,
    within_s: float = 100,
    **env: str,
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end and checks its exit code, which may be one of several."""
    done = subprocess.run(
        [*Hydra, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
        cwd=cwd,
        env={**os.environ, **env},
    )
    assert done.returncode in (expect if isinstance(expect, tuple) else (expect,)), (
        f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    )
    assert "Traceback" not in done.stderr
    return done


def table(run: Path) -> list[dict[str, str]]:
    """The rows of a run's table.csv."""
    with (run / "table.csv").open() as file:
        return list(csv.DictReader(file))


def assert_all_arrived(row: Mapping[str, object], due: int) -> None:
    """Nothing was lost, and on a machine that other tests load as well, most of what was due was sent in time."""
    sent, received = float(str(row["total_tx"])), float(str(row["total_rx"]))
    assert 0.5 * due <= sent <= due
    assert (received, float(str(row["client_loss_pct"]))) == (sent, 0)


def steps(run: Path) -> list[tuple[int, str]]:
    """The (epoch, status) of every committed step; empty while there is no run yet."""
    if not (run / DATABASE).is_file():
        return []
    with contextlib.closing(sqlite3.connect(run / DATABASE, timeout=10)) as db:
        return list(db.execute("SELECT epoch, status FROM steps ORDER BY epoch"))


def events(run: Path, kind: type[Event]) -> list[str]:
    """What a run's events of a kind say, oldest first; none while there is no run yet."""
    if not (run / DATABASE).is_file():
        return []
    with contextlib.closing(sqlite3.connect(run / DATABASE, timeout=10)) as db:
        found = db.execute("SELECT detail FROM events WHERE kind = ? ORDER BY id", (kind.kind,))
        return [detail for (detail,) in found]


class Background:
    """A ``hydra`` command that goes on while the test does something to it."""

    def __init__(self, *arguments: object, log: Path, program: Sequence[str], env: Mapping[str, str]) -> None:
        self._log = log
        with log.open("w") as file:
            self.process = psutil.Popen(
                [*program, *map(str, arguments)],
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **env},
            )

    def family(self) -> list[psutil.Process]:
        """Every process below the command."""
        try:
            found: list[psutil.Process] = self.process.children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return found

    def clients(self, kind: str) -> list[psutil.Process]:
        """Client processes of a kind, e.g. ``zmq-sub``: the parents of their groups, their relays and the clients."""
        found = []
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                if kind in process.cmdline():
                    found.append(process)
        return found

    def output(self) -> str:
        """What it has printed so far."""
        return self._log.read_text()

    def wait(self, timeout_s: float = 60) -> int:
        """Its exit code."""
        code = self.process.wait(timeout_s)
        assert isinstance(code, int)
        return code


@contextlib.contextmanager
def background(
    *arguments: object, log: Path, program: Sequence[str] = Hydra, env: Mapping[str, str] | None = None
) -> Iterator[Background]:
    """Starts a command and makes sure that nothing of it is left when the test ends."""
    command = Background(*arguments, log=log, program=program, env=env or {})
    family: list[psutil.Process] = []
    try:
        yield command
        family = command.family()
    finally:
        family = family or command.family()
        for process in [command.process, *family]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        command.process.wait(10)


def gone(processes: list[psutil.Process]) -> bool:
    """Whether all of these have ended."""
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in _known(processes))


def _known(processes: list[psutil.Process]) -> Iterator[psutil.Process]:
    for process in processes:
        try:
            process.status()
        except psutil.NoSuchProcess:
            continue
        yield process
