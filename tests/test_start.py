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
}
"""Libraries that take tens of milliseconds each."""

OF_CONFIGURATION = {"pydantic"}
"""What it takes to say what is wrong with a scenario."""

PROGRAM = """
import sys
from hydra.cli import main
try:
    main()
finally:
    print("\\nimported:", *{name.partition(".")[0] for name in sys.modules})
"""


@pytest.mark.parametrize(
    ("arguments", "code", "allowed"),
    [
        (["--help"], 0, set()),
        (["zmqrate", "--help"], 0, set()),
        (["kafka-perf", "--help"], 0, set()),
        (["run"], 2, set()),
        (["zmqfixed", "--clients", "many"], 2, set()),
        (["kafka-batch", "--rat", "5"], 2, set()),
        (["zmqfixed", "--rate", "-1"], 2, OF_CONFIGURATION),
        (["zmqfixed", "--set", "sweep.clinets=[3]"], 2, OF_CONFIGURATION),
        (["run", "no-such-scenario"], 2, OF_CONFIGURATION),
        (["zmqfixed", "--master", "nowhere://"], 2, OF_CONFIGURATION),
    ],
)
def test_what_is_not_needed_is_not_imported(arguments: list[str], code: int, allowed: set[str]) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    modules = set(done.stdout.rpartition("\nimported:")[2].split())
    assert "click" in modules
    assert not (HEAVY - allowed) & modules
