"""Signals within a second are one interrupt; a later one ends the process at once, and shows what is left."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import pytest

from hydra.errors import Terminated
from hydra.options.interrupts import CtrlC, Interrupts

LEFT = "topic t may be left at h:1; hydra kafka-clean --servers h:1 removes this topic"


class Pressed:
    """Signals at chosen seconds, and what became of each: its exception, the lines of the end, or nothing."""

    def __init__(self) -> None:
        self.now_s, self.ended = 100.0, list[Sequence[str]]()
        self.interrupts = Interrupts(lambda: self.now_s, self.ended.append)

    def press(self, after_s: float = 0.0, number: int = signal.SIGINT) -> object:
        self.now_s += after_s
        before = len(self.ended)
        try:
            self.interrupts(number)
        except KeyboardInterrupt as e:
            return type(e)
        return self.ended[-1] if len(self.ended) > before else None


@pytest.fixture
def pressed() -> Pressed:
    return Pressed()


@pytest.mark.parametrize("gap_s", [0.0, 0.05, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP])
def test_a_second_signal_within_a_second_is_the_same_press(pressed: Pressed, gap_s: float, number: int) -> None:
    assert pressed.press() is CtrlC
    assert pressed.press(gap_s, number) is None
    pressed.interrupts.hold(lambda: [LEFT])
    assert pressed.press(0.0, number) is None
    assert not pressed.ended


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, CtrlC), (signal.SIGTERM, Terminated), (signal.SIGQUIT, Terminated)]
)
def test_the_first_signal_during_a_tear_down_waits_for_its_end(
    pressed: Pressed, number: int, kind: type[KeyboardInterrupt]
) -> None:
    pressed.interrupts.hold(lambda: [LEFT])
    assert pressed.press(0.0, number) is None
    assert pressed.press(0.5, number) is None
    pressed.interrupts.release()
    with pytest.raises(kind):
        pressed.interrupts.raise_waiting()
    pressed.interrupts.raise_waiting()
    assert not pressed.ended


@pytest.mark.parametrize("begun", [True, False], ids=["interrupted", "at the end"])
def test_a_later_signal_ends_a_tear_down_at_once_and_tells_what_is_left(pressed: Pressed, begun: bool) -> None:
    if begun:
        pressed.press()
    pressed.interrupts.hold(lambda: [LEFT])
    if not begun:
        pressed.press()
    assert pressed.press(1.5) == [f"hydra: ended at once: {LEFT}"]


def test_nothing_left_is_told_too(pressed: Pressed) -> None:
    pressed.press()
    pressed.interrupts.hold(list)
    pressed.press(2.0)
    assert "end by themselves" in pressed.ended[0][0]


def test_before_a_tear_down_every_later_signal_is_an_interrupt(pressed: Pressed) -> None:
    assert pressed.press() is CtrlC
    assert pressed.press(1.5) is CtrlC


def test_after_the_command_a_signal_ends_the_process_without_a_word(pressed: Pressed) -> None:
    pressed.interrupts.end()
    assert pressed.press() == []
