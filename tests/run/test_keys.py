"""Keys are taken from a terminal of one's own only."""

from __future__ import annotations

import os
import pty
import select
import termios
from collections.abc import Iterator

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


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Both ends of one that is taken for our own."""
    monkeypatch.setattr(Keys, "_ours", lambda self: True)
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


def test_what_was_typed_before_was_not_meant_for_us(terminal: tuple[int, int]) -> None:
    outer, inner = terminal
    os.write(outer, b"less runs/x\n")
    select.select([inner], [], [], 10)
    keys = Keys(inner)
    assert keys.open()
    assert keys.pressed() == ""
    keys.close()


@pytest.mark.parametrize(
    ("typed", "key"), [(b"s", "s"), (b"ss", "s"), (b"E", "E"), (b"less", ""), (b"\x1bOS", ""), (b"\xc3\xa4", "")]
)
def test_only_a_key_by_itself_is_one(terminal: tuple[int, int], typed: bytes, key: str) -> None:
    outer, inner = terminal
    keys = Keys(inner)
    assert keys.open()
    os.write(outer, typed)
    select.select([inner], [], [], 10)
    assert keys.pressed() == key
    keys.close()
