"""Keys are taken from a terminal of one's own only."""

from __future__ import annotations

import os
import pty
import termios

import pytest

from hydra.run.keys import Keys


@pytest.mark.parametrize("what", ["another's terminal", "a pipe", "closed"])
def test_what_is_no_terminal_in_the_foreground_is_left_alone(what: str) -> None:
    other, end = pty.openpty() if what == "another's terminal" else os.pipe()
    modes = termios.tcgetattr(end) if what == "another's terminal" else None
    if what == "closed":
        os.close(end)
    keys = Keys(end)
    assert not keys.open()
    assert keys.pressed() == ""
    keys.close()
    if modes is not None:
        assert termios.tcgetattr(end) == modes
    os.close(other)
    if what != "closed":
        os.close(end)
