"""Runs the ``hydra`` command as a user would, and waits for what it should do."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import click
import psutil
from click.testing import CliRunner

from hydra.cli.main import cli
from hydra.errors import HydraError
from hydra.events.event import Event
from hydra.events.group_events import ClientsConnected
from hydra.events.run_events import WindowOpened
from hydra.run import launcher
from hydra.store.database import DATABASE, RunStore
from tests.suite.waiting import LONG_S, SOON_S, wait_until

T = TypeVar("T")
Hydra = [sys.executable, "-m", "hydra.cli.main"]
LIFELINE_S = min(SOON_S, 25.0)
"""Within this time all processes of a killed command have ended: one that did not notice by the lifeline would stay
until it has heard nothing for 30 s, or for ever."""


def hydra(
    *arguments: object, expect: int | tuple[int, ...] = 0, cwd: Path | None = None, within_s: float = LONG_S, **env: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end and checks its exit code, which may be one of several."""
    words, environment = [*Hydra, *map(str, arguments)], {**os.environ, **env}
    done = subprocess.run(words, capture_output=True, text=True, timeout=within_s, cwd=cwd, env=environment)
    codes = expect if isinstance(expect, tuple) else (expect,)
    assert done.returncode in codes, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def refusal(*arguments: object) -> str:
    """The one line of a command that is refused before it starts anything, in this process: that takes milliseconds."""
    with patch.object(launcher, "raise_open_files"):
        done = CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)
    assert isinstance(done.exception, HydraError | click.ClickException), done.output
    text = done.exception.format_message() if isinstance(done.exception, click.ClickException) else str(done.exception)
    assert len(text.splitlines()) == 1
    return text


def answer_of(*words: object, out: Path) -> dict[str, Any]:
    """The answer. A no counts as a yes if only the rate was missed: other tests took the CPU for a moment."""
    done = hydra("slo", *words, "--json", "--quiet", "--out", out, expect=(0, 3))
    found: dict[str, Any] = json.loads(done.stdout)
    assert [o["name"] for o in found["objectives"] if not o["holds"]] in ([], ["rate"])
    assert found["holds"] is (done.returncode == 0)
    return found


def table(run: Path) -> list[dict[str, str]]:
    """The rows of a run's table.csv."""
    with (run / "table.csv").open() as file:
        return list(csv.DictReader(file))


UNKNOWN = (0, 3)
"""Exit codes of a search of few and short steps: a search may have no answer."""


def measured(run: Path, *arguments: object, expect: int | tuple[int, ...] = 0) -> list[dict[str, str]]:
    """The rows of a run that is made for that."""
    hydra(*arguments, "--out", run, expect=expect)
    return table(run)


def assert_all_arrived(row: Mapping[str, object], due: int) -> None:
    """Nothing was lost, and on a machine that other tests load as well, most of what was due was sent in time."""
    sent, received = float(str(row["total_tx"])), float(str(row["total_rx"]))
    assert 0.5 * due <= sent <= due
    assert (received, float(str(row["client_loss_pct"]))) == (sent, 0)


def assert_clocks_known(run: Path, ahead_s: Mapping[str, int]) -> None:
    """The run's only step knows each host's clock within its bound, and has samples of each host.

    Args:
        run: the run's folder.
        ahead_s: by agent, how far its CLOCK_MONOTONIC is ahead of this machine's; 0 is this machine's own clock.
    """
    with RunStore.open(run) as store:
        (step,) = store.results()
        clocks, samples, host_of = store.clocks(step.epoch), store.host_samples(step.epoch), store.host_of(step.epoch)
    assert {agent: clock.same_host for agent, clock in clocks.items()} == {agent: not s for agent, s in ahead_s.items()}
    for agent, s in ahead_s.items():
        clock = clocks[agent]
        assert bool(s) <= abs(clock.offset_ns - 1_000_000_000 * s) <= clock.error_ns
    assert len({host_of[agent] for agent in ahead_s}) == len(set(ahead_s.values()))
    assert all(len(samples[host_of[agent]]) >= 4 for agent in ahead_s)
    bound_us = step.figures["latency_bound_us"]
    assert isinstance(bound_us, float)
    assert 0 < bound_us <= sum(sorted(clock.error_ns for clock in clocks.values())[-2:]) / 1000 + 1


def steps(run: Path) -> list[tuple[int, str]]:
    """The (epoch, status) of every committed step; empty while there is no run yet."""
    return _query(run, "SELECT epoch, status FROM steps ORDER BY epoch")


def events(run: Path, kind: type[Event]) -> list[str]:
    """A run's events of a kind, oldest first; none while there is no run yet."""
    found = _query(run, "SELECT detail FROM events WHERE kind = ? ORDER BY id", kind.kind)
    return [detail for (detail,) in found]


def _query(run: Path, query: str, *values: str) -> list[Any]:
    if not (run / DATABASE).is_file():
        return []
    with contextlib.closing(sqlite3.connect(run / DATABASE, timeout=SOON_S)) as db:
        return db.execute(query, values).fetchall()


def await_clients(run: Path) -> None:
    """Waits until all clients of the first step are connected, before its window.

    A test finds the processes and Pods that it is to end then: a search may take longer than a window.
    """
    wait_until(lambda: events(run, ClientsConnected), "the first step's clients", LONG_S)


def await_window(run: Path, number: int = 1) -> None:
    """Waits for the window of the first step, or of a later one."""
    wait_until(lambda: len(events(run, WindowOpened)) >= number, f"window {number}", LONG_S)


class Background:
    """A ``hydra`` command that runs while the test does something to it."""

    def __init__(self, words: Sequence[str], log: Path, env: Mapping[str, str]) -> None:
        self._log, env = log, {**os.environ, **env}
        self._run = Path(words[words.index("--out") + 1]) if "--out" in words else None
        with log.open("w") as file:
            self.process = psutil.Popen(words, stdout=file, stderr=file, start_new_session=True, env=env)

    def family(self) -> list[psutil.Process]:
        """Every process below the command."""
        try:
            found: list[psutil.Process] = self.process.children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return found

    def named(self, name: str) -> list[psutil.Process]:
        """The processes of the family that run this program."""
        return self._those(lambda process: process.name() == name)

    def clients(self, kind: str) -> list[psutil.Process]:
        """Client processes of a kind, e.g. ``zmq-sub``: the parents of their groups, their relays and the clients."""
        return self._those(lambda process: kind in process.cmdline())

    def _those(self, wanted: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
        """Of the family; a process that ends meanwhile is none of them."""
        found = []
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                if wanted(process):
                    found.append(process)
        return found

    def output(self) -> str:
        """What it has printed so far."""
        return self._log.read_text()

    def until(self, condition: Callable[[], T], what: str, within_s: float = LONG_S) -> T:
        """Waits until the condition gives something true, and returns that.

        Raises:
            AssertionError: the command has ended before, or the deadline is over; the message has :meth:`state`.
        """
        __tracebackhide__ = True

        def happened() -> T:
            code = self.process.poll()  # first: what happened before the end counts
            value = condition()
            assert value or code is None, f"ended with {code} before {what}\n{self.state()}"
            return value

        return wait_until(happened, what, within_s, saw=self.state)

    def state(self) -> str:
        """The processes of the command, and the ends of its output, of its events and of the logs of its groups."""
        found = ["processes:"]
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                used = process.cpu_times()
                words = " ".join(process.cmdline())[:120]
                found.append(f"  {process.pid} {process.status()} {used.user + used.system:.1f} s of CPU: {words}")
        run = self._run or self._log
        noted = _query(run, "SELECT kind, detail FROM events ORDER BY id")
        found += ["events:", *(f"  {kind}: {detail}" for kind, detail in noted[-20:])]
        for log in (self._log, *sorted(run.rglob("stderr")), *sorted(run.rglob("server*.log"))):
            last = log.read_text(errors="replace").splitlines()[-8:]
            found += [f"{log}:", *(f"  {line}" for line in last)]
        return "\n".join(found)

    def wait(self, timeout_s: float = LONG_S) -> int:
        """Its exit code."""
        code = self.process.wait(timeout_s)
        assert isinstance(code, int)
        return code


@contextlib.contextmanager
def background(
    *arguments: object, log: Path | None = None, program: Sequence[str] = Hydra, env: Mapping[str, str] | None = None
) -> Iterator[Background]:
    """Starts a command; its output is beside its run, and nothing of it is left when the test ends."""
    words = [*program, *map(str, arguments)]
    command = Background(words, log or Path(words[words.index("--out") + 1]).with_suffix(".log"), env or {})
    try:
        yield command
    finally:
        for process in [command.process, *command.family()]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        command.process.wait(SOON_S)


def interrupt(run: Path, *arguments: object) -> None:
    """Interrupts a new run with three client counts after its first row; a slow machine has two windows for this."""
    small = ("--clients", "1,2,3", "--rate", 20, "--duration", 2, "--set", "warmup_s=0")
    with background(*arguments, *small, "--out", run) as command:
        command.until(lambda: steps(run), "the first row")
        command.process.send_signal(signal.SIGINT)
        assert command.wait() == 130, command.state()


def all_ended(processes: Sequence[psutil.Process]) -> bool:
    """Whether all of these have ended."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                return False
    return True
