"""The first process of a command in the cluster: what becomes of the command's output."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hydra.cluster.kubernetes.inside import controller

pytestmark = pytest.mark.processes


def test_a_command_writes_to_a_terminal_and_the_file_has_it_as_it_is(tmp_path: Path) -> None:
    script = "import sys; print(sys.stdout.isatty()); print('x' * 300_000)"
    with (tmp_path / "output").open("wb", buffering=0) as written, controller.passed_on(written) as terminal:
        assert subprocess.run([sys.executable, "-c", script], stdout=terminal, timeout=20).returncode == 0
    assert (tmp_path / "output").read_text() == "True\n" + "x" * 300_000 + "\n"


def test_a_command_whose_output_cannot_be_kept_is_told_and_does_not_wait(capsys: pytest.CaptureFixture[str]) -> None:
    script = "import os\nwhile True: os.write(1, bytes(65536))"
    with Path("/dev/full").open("wb", buffering=0) as written, controller.passed_on(written) as terminal:
        child = subprocess.Popen([sys.executable, "-c", script], stdout=terminal, stderr=subprocess.PIPE)
        try:
            _, said = child.communicate(timeout=20)
        finally:
            child.kill()
    assert b"Input/output error" in said
    assert capsys.readouterr().err == "hydra: its output cannot be kept: No space left on device\n"


def test_another_process_that_has_the_terminal_open_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "COPIED_WITHIN_S", 0.1)
    before = set(threading.enumerate())
    script = "import os; os.read(0, 1); os.write(1, b'late')"
    with (tmp_path / "output").open("wb", buffering=0) as written, controller.passed_on(written) as terminal:
        (copying,) = set(threading.enumerate()) - before
        left = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=terminal)
    left.communicate(b"x", timeout=20)
    copying.join(20)
    # What a thread raises fails the test.
    assert not copying.is_alive()
