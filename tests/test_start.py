"""What a command imports before it can answer: `hydra --help` and a refusal wait for nothing that only a run needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "numpy",
    "pydantic",
    "zmq",
    "tabulate",
    "rich",
    "sqlite3",
    "scipy",
    "psutil",
    "kafka",
    "confluent_kafka",
    "pymesos",
    "jinja2",
    "ssl",
    "asyncio",
    "nbconvert",
    "plotly",
}
"""Libraries that take tens of milliseconds each."""

MORE_THAN_NAMES = {
    *("importlib.metadata", "email", "json", "tomllib", "msgspec", "difflib"),
    *("hydra.model", "hydra.system", "hydra.columns", "hydra.config"),
}
"""What it takes to know more of a command than its name and its help: most of it by many dataclasses."""

OF_CONFIGURATION = {"pydantic"}
"""What it takes to say what is wrong with a scenario."""

PROGRAM = """
import sys
from hydra.cli import main
try:
    main()
finally:
    print("\\nimported:", *sys.modules)
"""


@pytest.mark.parametrize(
    ("arguments", "code", "allowed"),
    [
        (["--help"], 0, set()),
        (["runs", "--help"], 0, set()),
        (["zmqrate", "--help"], 0, set()),
        (["kafka-perf", "--help"], 0, set()),
        (["run"], 2, set()),
        (["zmqrat"], 2, set()),
        (["runs", "/no/such/folder"], 2, set()),
        (["report", "/no/such/folder"], 2, set()),
        (["serve", "/no/such/folder"], 2, set()),
        (["serve", "/", "--host", "0.0.0.0"], 2, set()),
        (["kafka-perf", "no-such-experiment"], 2, set()),
        (["zmqfixed", "--resume", "/no/such/folder"], 2, set()),
        (["check", "no-such-scenario"], 2, set()),
        (["agents", "--for", "no-such-scenario"], 2, set()),
        (["artifact", "no-such-scenario"], 2, set()),
        (["zmqfixed", "--config", "/no/such/file"], 2, OF_CONFIGURATION),
        (["fit"], 2, set()),
        (["plan", "--clients", "0"], 2, set()),
        (["zmqfixed", "--clients", "many"], 2, set()),
        (["kafka-batch", "--rat", "5"], 2, set()),
        (["zmqfixed", "--rate", "-1"], 2, set()),
        (["zmqfixed", "--set", "sweep.clinets=[3]"], 2, set()),
        (["run", "no-such-scenario"], 2, set()),
        (["zmqfixed", "--master", "nowhere://"], 2, OF_CONFIGURATION),
    ],
)
def test_what_is_not_needed_is_not_imported(arguments: list[str], code: int, allowed: set[str]) -> None:
    modules = imported(arguments, code)
    assert "click" in modules
    assert not (HEAVY - allowed) & modules


def test_a_list_of_commands_takes_their_names_and_their_help_alone() -> None:
    modules = imported(["--help"], 0)
    assert "hydra.zmqtest.commands" in modules
    assert not MORE_THAN_NAMES & modules


def imported(arguments: list[str], code: int) -> set[str]:
    """The modules that a command has imported when it ends with this exit code."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return set(done.stdout.rpartition("\nimported:")[2].split())
