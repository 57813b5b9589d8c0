"""A run whose server stands still for a part of its window."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from tests.integration.command import await_window, background, table
from tests.suite.waiting import LONG_S, SOON_S, wait_until


def row_of(run: Path, pid: int, *arguments: object, stopped_s: float) -> dict[str, str]:
    """The only row of a run; the server with this process stands still from the first second of its window on."""
    server = psutil.Process(pid)
    with background(*arguments, "--set", "warmup_s=0", "--quiet", "--out", run) as command:
        await_window(run)
        held_s = time.monotonic()
        wait_until(lambda: time.monotonic() >= held_s + 0.8, "the moment to stop", SOON_S)
        server.suspend()
        try:
            held_s = time.monotonic()
            wait_until(lambda: time.monotonic() >= held_s + stopped_s, "the end of the stop", SOON_S)
        finally:
            server.resume()
        assert command.wait(LONG_S) == 0, command.state()
    (row,) = table(run)
    return row


def assert_not_clean(row: dict[str, str], stopped_s: float) -> None:
    """Everything arrived at the rate that was requested, and still the row is not clean."""
    assert (row["steady"], row["clean"]) == ("False", "False")
    assert stopped_s - 1 <= float(row["stopped_s"])
    assert "although messages were due" in row["why"]
    assert "stop " in row["unsteady"]
