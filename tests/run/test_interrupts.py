"""The exit code of the command shows what it did, and not at which moment of Python's a signal came."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hydra.errors import EXIT_INTERRUPTED
from hydra.store.database import ENDED_KEY, FINISHED, INTERRUPTED, RunStore
from tests.suite.waiting import LONG_S

pytestmark = pytest.mark.tier("all")

DURING = """
import sys
import hydra.cli.main

hydra.cli.main.cli.callback = lambda: exec("import os, signal; os.kill(os.getpid(), signal.{name})")
sys.argv = ["hydra", "schema"]
hydra.cli.main.main()
"""
"""As while a dataclass is made: its methods are a text, which is executed."""

CALLBACK = """
import os, signal, sys
import hydra.cli.main

class Late:
    def __del__(self):
        signal.raise_signal(signal.{name})

def command():
    late = Late()
    del late
    [n for n in range(1000)]
    signal.pause()

hydra.cli.main.cli.callback = command
sys.argv = ["hydra", "schema"]
hydra.cli.main.main()
"""
"""As in a weak reference's callback: Python discards what is raised there."""

NAMED = """
import signal
import hydra.cli.main

class Field:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.{name})

def command():
    class Scenario:
        field = Field()

hydra.cli.main.cli.callback = command
import sys
sys.argv = ["hydra", "schema"]
hydra.cli.main.main()
"""
"""As while the class of a dataclass is made: Python 3.11 makes an error of what is raised there."""

AFTER = """
import os, signal, sys
import hydra.cli.main

class Late:
    def __del__(self, kill=os.kill, me=os.getpid()):
        kill(me, signal.{name})

late = Late()
sys.argv = ["hydra", "--version"]
hydra.cli.main.main()
"""
"""Such an object goes when Python has given up its own handlers."""

BEGUN = """
import signal, sys
import hydra.cli.main
from hydra.run import launcher, runner
from hydra.store import database

def interrupted(place, name):
    its_own = getattr(place, name)

    def first(*_, **__):
        setattr(place, name, its_own)
        signal.raise_signal(signal.SIGINT)

    setattr(place, name, first)

interrupted({place}, "{name}")
sys.argv = ["hydra", "zmqfixed", "--clients", "1", "--duration", "0.2", "--set", "warmup_s=0", "--out", "{out}"]
hydra.cli.main.main()
"""
"""As between the moment at which the database of a run has its name and the first step, or behind the last step."""


def code_of(script: str, folder: Path) -> int:
    """Of a module: after ``python -m``, Python looks once more whether it was interrupted."""
    (folder / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run([sys.executable, "-m", "script"], env=environment, capture_output=True, timeout=LONG_S)
    assert b"Traceback" not in done.stderr
    return done.returncode


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_within_a_text_that_is_executed_is_one_as_any_other(tmp_path: Path, name: str) -> None:
    assert code_of(DURING.format(name=name), tmp_path) == EXIT_INTERRUPTED


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_in_a_callback_is_not_lost(tmp_path: Path, name: str) -> None:
    assert code_of(CALLBACK.format(name=name), tmp_path) == EXIT_INTERRUPTED


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_while_a_class_is_made_is_an_interruption(tmp_path: Path, name: str) -> None:
    assert code_of(NAMED.format(name=name), tmp_path) == EXIT_INTERRUPTED


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP"])
def test_a_signal_after_the_end_changes_nothing(tmp_path: Path, name: str) -> None:
    assert code_of(AFTER.format(name=name), tmp_path) == 0


@pytest.mark.parametrize(
    ("place", "name", "ended"),
    [
        ("database", "_connect", INTERRUPTED),
        ("launcher", "run", INTERRUPTED),
        ("runner", "code_of", FINISHED),
    ],
)
def test_a_stored_run_has_its_end_and_tables_although_no_step_was_interrupted(
    tmp_path: Path, place: str, name: str, ended: str
) -> None:
    out = tmp_path / "out"
    assert code_of(BEGUN.format(place=place, name=name, out=out), tmp_path) == EXIT_INTERRUPTED
    with RunStore.open(out) as store:
        assert (store.meta(ENDED_KEY), store.meta("scenario")["name"]) == (ended, "zmqfixed")
        rows = len(store.results())
    assert rows == (ended == FINISHED)
    assert len((out / "table.csv").read_text().splitlines()) == 1 + rows
