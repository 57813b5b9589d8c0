"""A run with a password in its properties: nobody but the clients gets to know it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.integration.command import background, hydra
from tests.integration.secret import leaks, property_file
from tests.suite.waiting import LONG_S, wait_until

pytestmark = pytest.mark.tier("all")


def test_a_password_is_nowhere_but_with_the_clients(tmp_path: Path) -> None:
    run, log = tmp_path / "run", tmp_path / "log"
    small = ("--clients", "2", "--rate", 200, "--duration", 1, "--set", "warmup_s=0", "--client", "confluent-kafka")
    arguments = ("kafka-fixed", *small, "--kafka-prop-file", property_file(tmp_path), "--out", run)
    words: dict[int, bytes] = {}
    with background(*arguments, log=log) as command:

        def ended() -> bool:
            for process in command.family():
                try:
                    environment = Path(f"/proc/{process.pid}/environ")
                    words[process.pid] = Path(f"/proc/{process.pid}/cmdline").read_bytes() + environment.read_bytes()
                    status = environment.stat()
                except OSError:
                    continue  # it ended meanwhile
                # Nobody else may read it: the run's client key stands there.
                assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (os.getuid(), 0o400)
            return command.process.poll() is not None

        wait_until(ended, "the end of the run", LONG_S)
        assert command.wait() == 0, command.output()
    hydra("report", run)
    # A supervisor and its Java, and of each role a parent, a relay and its clients.
    assert len(words) >= 2 + 3 + 4
    assert {pid: leaks(text) for pid, text in words.items() if leaks(text)} == {}
    kept = [path for path in (*run.rglob("*"), log) if path.is_file()]
    assert {path.name for path in kept} >= {"run.db", "report.html", "report.ipynb", "stderr", "log"}
    assert {path: leaks(path.read_bytes()) for path in kept if leaks(path.read_bytes())} == {}
