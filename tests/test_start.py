"""What a command imports before it can answer: `hydra --help` and a refusal wait for nothing that only a run needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hydra.errors import EXIT_INTERRUPTED, EXIT_USAGE, INTERRUPTED_EARLY
from tests.suite.waiting import LONG_S

pytestmark = pytest.mark.tier("test")

HEAVY = {
    *("numpy", "zmq", "tabulate", "rich", "sqlite3", "scipy", "psutil", "kafka", "confluent_kafka"),
    *("pymesos", "jinja2", "ssl", "asyncio", "plotly"),
}
"""Libraries that take tens of milliseconds each."""

MORE_THAN_NAMES = {
    *("importlib.metadata", "email", "json", "tomllib", "msgspec", "difflib"),
    *("hydra.model", "hydra.system", "hydra.measure", "hydra.config.scenario"),
}
"""What it takes to know more of a command than its name and its help: most of it by many dataclasses."""

OF_OTHERS = {
    *("slo", "comparison", "held", "search", "points", "repetition", "experiment", "experiment_file", "remote_command"),
    *("deployed_servers", "keyboard", "live_view", "metric_families", "result_commands"),
}
"""Modules of other commands, kinds of sweeps, servers, and views that were not asked for."""
MOST_OF_A_RUN = 200
"""Modules of Hydra, packages included."""

PROGRAM = """
import sys
from hydra.cli.main import main
try:
    main()
finally:
    print("\\nimported:", *sys.modules)
"""


INTERRUPTED = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, *_):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
from hydra.cli.entry_point import main
main()
"""


FEW = ("--help", "zmqfixed --clients many", "check no-such-scenario")
MORE = (
    *("runs --help", "zmqrate --help", "kafka-perf --help", "run", "zmqrat", "runs /no/such/folder"),
    *("report /no/such/folder", "serve /no/such/folder", "serve / --host 0.0.0.0", "kafka-perf no-such-experiment"),
    *("zmqfixed --resume /no/such/folder", "agents --for no-such-scenario", "artifact no-such-scenario", "fit"),
    *("zmqfixed --config /no/such/file", "plan --clients 0", "kafka-batch --rat 5", "zmqfixed --rate -1"),
    *("zmqfixed --set sweep.clinets=[3]", "run no-such-scenario", "zmqfixed --master nowhere://"),
)


@pytest.mark.parametrize("line", [*FEW, *(pytest.param(line, marks=pytest.mark.tier("all")) for line in MORE)])
def test_what_is_not_needed_is_not_imported(line: str) -> None:
    modules = imported(line.split(), 0 if "--help" in line else EXIT_USAGE)
    assert "click" in modules
    assert not HEAVY & modules
    # Secrets are looked for where a command line or an error may have one.
    assert line not in FEW or "hydra.store.redaction" not in modules


def test_a_list_of_commands_takes_their_names_and_their_help_alone() -> None:
    modules = imported(["--help"], 0)
    assert "hydra.zmqtest.commands" in modules
    assert not MORE_THAN_NAMES & modules


def imported(arguments: list[str], code: int) -> set[str]:
    """The modules that a command has imported when it ends with this exit code."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return set(done.stdout.rpartition("\nimported:")[2].split())


def test_an_interrupt_during_imports_is_told_in_one_line() -> None:
    line = f"hydra: {INTERRUPTED_EARLY}\n".encode()
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, check=False, timeout=LONG_S)
    assert (done.returncode, done.stdout, done.stderr) == (EXIT_INTERRUPTED, b"", line)


def test_a_run_imports_neither_other_systems_nor_what_other_commands_do(tmp_path: Path) -> None:
    line = f"zmq-fixed --subscribers 10 --rate 1000 --duration 0.2 --out {tmp_path / 'run'}"
    modules = {name for name in imported(line.split(), 0) if name.split(".")[0] == "hydra"}
    assert {name for name in modules if name.endswith("test")} == {"hydra.zmqtest"}
    assert not OF_OTHERS & {name.rpartition(".")[2] for name in modules}
    assert len(modules) <= MOST_OF_A_RUN
