"""The Python group's own promises: its arguments, one thread at the fork, and nothing forked when that is broken."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from hydra.client import group
from hydra.client.processes import thread_count
from hydra.control import curve
from hydra.zmqtest import pyzmq

ARGUMENTS = ["zmq-sub", "--group", "g", "--first-id", "3", "--count", "2"]


def test_the_command_line() -> None:
    options = group.parse([*ARGUMENTS, "--fork-window", "5", "--respawns", "0"], ["zmq-sub"])
    assert options == group.GroupOptions("zmq-sub", "g", 3, 2, 5, 0)
    assert group.parse(ARGUMENTS, ["zmq-sub"]) == group.GroupOptions("zmq-sub", "g", 3, 2, 128, 3)


def test_threads_are_counted() -> None:
    before = thread_count()
    leave = threading.Event()
    thread = threading.Thread(target=leave.wait)
    thread.start()
    assert thread_count() == before + 1
    leave.set()
    thread.join()


@pytest.mark.processes
def test_a_parent_with_a_second_thread_does_not_fork() -> None:
    """What a library that starts threads at import (numpy's OpenBLAS, unless told not to) would do to a group."""
    program = (
        "import sys, threading\n"
        "from hydra.client import group\n"
        "from hydra.zmqtest import pyzmq\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        f"sys.exit(group.main(pyzmq.kinds(), {ARGUMENTS!r}))\n"
    )
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **curve.environment(curve.generate(), "tcp://127.0.0.1:1")}
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=20)
    assert ran.returncode != 0
    assert "one thread when it forks" in ran.stderr


@pytest.mark.processes
def test_importing_a_client_leaves_one_thread() -> None:
    program = "import hydra.zmqtest.pyzmq\nfrom hydra.client.processes import thread_count\nprint(thread_count())"
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "1"


def test_the_kinds_that_it_offers() -> None:
    kinds = pyzmq.kinds()
    assert {name: kind.role for name, kind in kinds.items()} == {"zmq-pub": "publisher", "zmq-sub": "subscriber"}
