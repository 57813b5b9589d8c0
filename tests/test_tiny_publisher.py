"""The publisher of docs/another-client.md, which has no line of Hydra's: a step as it is asked for, and its end.

All that it does is held to the protocol by tests/conformance/test_zmq_publisher.py with its command line.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hydra.errors import EXIT_USAGE
from hydra.model import HEADER_BYTES
from tests.conformance.bench import Bench, step_settings
from tests.conformance.zmq_ends import Listener
from tests.suite.waiting import SOON_S

PROGRAM = Path(__file__).parents[1] / "docs" / "examples" / "tiny_publisher.py"
# It finds its parts beside it, which tests forbid other programs (tox.ini).
COMMAND = f"env -u PYTHONSAFEPATH {shlex.quote(sys.executable)} {shlex.quote(str(PROGRAM))}"
CLIENT = 7
SETTINGS = step_settings(sndhwm=0, message_size=200, message_size_min=100, payload="json", rate=200.0)


def test_it_measures_a_step_and_leaves_nothing_behind(bench: Bench) -> None:
    program = bench.launch(COMMAND, "zmq-pub", first_id=CLIENT)
    listener = Listener(bench.peer, bench.configure_publisher(CLIENT, 1, SETTINGS))
    listener.await_probe(1)
    window, report = bench.publish(CLIENT, 1, 0.2)
    bench.peer.wait(lambda: len(listener.data(1)) == report.sent > 0, "all that was sent")
    assert [a.sequence for a in listener.data(1)] == list(range(report.sent))
    assert [a.time_ns for a in listener.data(1)] == [window.start_ns + n * 5_000_000 for n in range(report.sent)]
    assert all(100 <= a.size <= 200 and len(a.padding) == a.size - HEADER_BYTES for a in listener.data(1))
    bench.peer.wait(lambda: bool(listener.end_markers(1)), "an end marker")
    bench.quit()
    assert bench.await_exit(program, SOON_S) == 0


def test_nothing_stays_behind_when_whoever_launched_it_is_gone(bench: Bench) -> None:
    program = bench.launch(COMMAND, "zmq-pub", first_id=CLIENT)
    program.cut_lifeline()
    assert bench.await_exit(program, SOON_S) == 0


@pytest.mark.tier("test")
@pytest.mark.parametrize(("count", "text"), [("2", "--count 2"), ("1", "HYDRA_CONTROL is missing")])
def test_what_cannot_be_is_refused_in_one_line(count: str, text: str) -> None:
    words = [sys.executable, str(PROGRAM), "zmq-pub", "--group", "g", "--first-id", "0", "--count", count]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("HYDRA_", "PYTHONSAFEPATH"))}
    done = subprocess.run(words, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_USAGE
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1
