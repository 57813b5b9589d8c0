"""The Python group's own promises: its arguments, one thread at the fork, and nothing forked when that is broken."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hydra.client import process_group
from hydra.control import curve_security
from hydra.zmqtest import pyzmq
from tests.suite.waiting import LONG_S

ARGUMENTS = ["zmq-sub", "--group", "g", "--first-id", "3", "--count", "2"]


def test_the_command_line() -> None:
    options = process_group.parse([*ARGUMENTS, "--fork-window", "5", "--respawns", "0"], ["zmq-sub"])
    assert options == process_group.GroupOptions("zmq-sub", "g", 3, 2, 5, 0)
    assert process_group.parse(ARGUMENTS, ["zmq-sub"]) == process_group.GroupOptions("zmq-sub", "g", 3, 2, 128, 3)


def run(program: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        **curve_security.environment(curve_security.generate(), "tcp://127.0.0.1:1"),
    }
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=LONG_S)


@pytest.mark.tier("test")
def test_a_parent_with_a_second_thread_does_not_fork() -> None:
    """What a library that starts threads at import (numpy's OpenBLAS, by default) would do to a group."""
    ran = run(
        "import sys, threading\n"
        "from hydra.client import process_group\n"
        "from hydra.zmqtest import pyzmq\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        f"sys.exit(process_group.main(pyzmq.kinds(), {ARGUMENTS!r}))\n"
    )
    assert ran.returncode != 0
    assert "one thread when it forks" in ran.stderr


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import hydra.zmqtest.pyzmq, hydra.client.linux_process as p; print(p.thread_count())", "1"),
        # Every group has a relay: what it imports is paid for by each.
        ("import sys, hydra.client.relay; print(sorted({'numpy', 'psutil'} & sys.modules.keys()))", "[]"),
    ],
    ids=["a client leaves one thread", "a relay needs no numpy"],
)
def test_what_is_imported(program: str, expected: str) -> None:
    ran = run(program)
    assert (ran.stdout.strip(), ran.stderr) == (expected, "")


def test_the_kinds_that_it_offers() -> None:
    kinds = pyzmq.kinds()
    assert {name: kind.role for name, kind in kinds.items()} == {"zmq-pub": "publisher", "zmq-sub": "subscriber"}
