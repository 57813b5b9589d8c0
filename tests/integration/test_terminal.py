"""The live view of a run at a real terminal, its keys, and what is left of the terminal afterwards."""

from __future__ import annotations

import signal
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import pytest

from hydra.store.database import DATABASE
from tests.integration.command import hydra, steps
from tests.integration.terminal import Terminal, terminal

LONG = ("zmqfixed", "--clients", "1,2", "--rate", 200, "--duration", 600)
"""Nothing of it ends by itself within a test."""

pytestmark = pytest.mark.tier("all")


def test_keys_skip_a_row_and_end_a_run_which_goes_on_later(run: Path) -> None:
    with terminal(*LONG, "--out", run) as screen:
        at = screen.wait_for("step 1 of 2: 1 subscriber, 200/s")
        at = screen.wait_for("of this step left", after=at)
        assert screen.takes_keys
        assert "e end after this step   s skip this row" in screen.text
        screen.press("e")
        at = screen.wait_for("ends after this step", after=at)
        screen.press("s")
        at = screen.wait_for("step 1 of 2: 1 subscriber, 200/s: SKIPPED", after=at)
        assert screen.wait() == 130
        assert "ended after this step" in screen.text[at:]
        assert f"--resume {run}" in "".join(screen.text[at:].split("\r\n"))
        assert screen.is_as_before
    assert [status for _, status in steps(run)] == ["skipped"]
    with terminal(*LONG, "--resume", run) as screen:
        at = screen.wait_for("continues: 1 of 2 rows there (1 subscriber); 1 step to go")
        screen.wait_for("of this step left", after=at)
        screen.press("s")
        assert screen.wait() == 3
        assert screen.is_as_before
    done = hydra(*LONG, "--resume", run, expect=3)
    assert "is complete: nothing is left to measure" in done.stderr
    assert done.stdout.count("SKIPPED: by hand") == 1
    assert len(steps(run)) == 2


@pytest.mark.parametrize(
    "end", [lambda at: at.press("\x03"), lambda at: at.signal(signal.SIGTERM)], ids=["Ctrl-C", "kill"]
)
def test_the_terminal_is_as_before_however_a_run_ends(run: Path, end: Callable[[Terminal], None]) -> None:
    with terminal(*LONG, "--out", run) as screen:
        screen.wait_for("of this step left")
        assert not screen.is_as_before
        end(screen)
        assert screen.wait() == 130
        assert "interrupted before the first step ended: nothing was measured" in screen.text
        assert screen.is_as_before


def test_a_table_fits_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / ("a-long-name-of-a-folder-" * 4)
    (folder / "run").mkdir(parents=True)
    (folder / "run" / DATABASE).write_text("no database")
    with terminal("runs", folder, columns=80) as screen:
        assert screen.wait() == 0
        lines = screen.text.splitlines()
    assert len(lines) > 4
    table = list(takewhile(str.strip, lines))  # below it a path is one word
    assert max(map(len, table)) <= 80
