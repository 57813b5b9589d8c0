"""What a person sees while servers start and a run continues, a run that continues without a terminal, and keys."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import select
import sys
import termios
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import click
import pytest

from hydra.config.scenario import resolve
from hydra.events.run_events import SystemFact
from hydra.measure.step_result import StepResult
from hydra.model import ClusterSpec, Settings, StepPlan
from hydra.monitor.keyboard import Keyboard
from hydra.monitor.progress_view import Observer, ServerStartup, servers_of
from hydra.monitor.step_progress import StepProgress
from hydra.run.launcher import RunRequest
from tests.suite.waiting import SOON_S

Terminal = tuple[int, io.TextIOWrapper]
"""Our end of one, and what a program has."""
PLAN = StepPlan(clients=3, settings=Settings(rate=100.0, burst=100), duration_s=1.0)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    own, end = pty.openpty()
    with os.fdopen(end, "w", buffering=1) as stream:
        yield own, stream
    os.close(own)


def read_until(own: int, text: str) -> str:
    shown = ""
    while text not in shown:
        shown += os.read(own, 65_536).decode()
    return shown


def watch(observer: Observer) -> None:
    observer.show(SystemFact("begins", "now"))
    done = [StepResult(epoch, PLAN, "ok") for epoch in range(1, 5)]
    observer.sweep_begins(6, done, ("rate", "burst"))
    observer.step_begins(PLAN, 10.0)
    observer.tick(StepProgress(elapsed_s=0.5, share=0.5, received_pps=100.0))
    observer.step_ended(StepResult(1, PLAN, "ok"))
    observer.step_ended(StepResult(2, replace(PLAN, clients=6), "failed", reason="geheim was refused"))
    observer.close()


@pytest.mark.parametrize("columns", ["80", "0", ""])
def test_steps_and_warnings_are_lines_without_secrets(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    stream = io.StringIO()
    watch(Observer(stream, redact=lambda text: text.replace("geheim", "***")))
    begins, first, second = stream.getvalue().splitlines()
    assert begins == "begins: now"
    assert first.startswith("step 5 of 6: 3 subscribers, 100/s, burst 100: Tx")
    assert second == "warning: step 5 of 6: 6 subscribers, 100/s, burst 100: FAILED: *** was refused"


@pytest.mark.parametrize(
    ("plain", "quiet", "term", "view"),
    [
        (False, False, "xterm", True),
        (True, False, "xterm", False),
        (False, True, "xterm", False),
        (False, False, "dumb", False),
    ],
)
def test_a_terminal_has_a_view_unless_that_is_not_wanted(
    terminal: Terminal, plain: bool, quiet: bool, term: str, view: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    own, stream = terminal
    # No keys are read: the terminal is not the one that this test was started from.
    watch(Observer(stream, keys=Keyboard(stream.fileno()), plain=plain, quiet=quiet))
    shown = read_until(own, "was refused")
    assert ("Ctrl-C ends the run now" in shown) is view
    assert ("\x1b[?25l" in shown) is view


@pytest.mark.parametrize("ended", ["a full disk", "a closed pipe", "a closed terminal"])
def test_a_display_that_cannot_be_written_ends_nothing(ended: str) -> None:
    if ended == "a full disk":
        end = os.open("/dev/full", os.O_WRONLY)
    elif ended == "a closed pipe":
        reader, end = os.pipe()
        os.close(reader)
    else:
        own, end = pty.openpty()
        os.close(own)
    stream = os.fdopen(end, "w", buffering=1)
    try:
        with pytest.raises(OSError, match=r"No space|Broken pipe|Input/output"):
            print("it cannot be written", file=stream)
        watch(Observer(stream))
    finally:
        with contextlib.suppress(OSError):
            stream.close()


def test_a_step_that_failed_is_tried_again_under_its_number() -> None:
    stream = io.StringIO()
    observer = Observer(stream)
    observer.sweep_begins(2, [], ())
    for again in (True, True, False, False):
        observer.step_begins(PLAN, 10.0)
        observer.step_ended(StepResult(1, PLAN, "failed", reason="why"), again=again)
    observer.close()
    assert stream.getvalue().splitlines() == [
        "warning: step 1 of 2: 3 subscribers, 100/s: FAILED, is measured again: why",
        "warning: step 1 of 2, try 2: 3 subscribers, 100/s: FAILED, is measured again: why",
        "warning: step 1 of 2, try 3: 3 subscribers, 100/s: FAILED: why",
        "warning: step 2 of 2: 3 subscribers, 100/s: FAILED: why",
    ]


# --- the start of servers --------------------------------------------------------------------------------------------


class Clock:
    """Time that passes by being waited for."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        until_s = self.now_s + timeout_s
        while not condition():
            if self.now_s >= until_s:
                return False
            self.now_s += 0.25
        return True


def lines_of_start(
    texts_at: dict[float, str], takes_s: float, *, quiet: bool = False, what: str = "3 toy servers"
) -> list[str]:
    """The lines of a start that takes so long, with what it does from some moments on."""
    stream, clock = io.StringIO(), Clock()
    starting = ServerStartup(Observer(stream, quiet=quiet), what, clock.wait, clock)

    def up() -> bool:
        starting.doing = next((expected for at_s, expected in reversed(texts_at.items()) if clock.now_s >= at_s), "")
        return clock.now_s >= takes_s

    with starting.shown():
        assert starting.wait(up, 1000.0)
    assert starting.wait(lambda: True, 1.0)  # of something else, later
    return stream.getvalue().splitlines()


SHOWN = [
    "starting 3 toy servers: 0 of 3 answer (for 2 s)",
    "starting 3 toy servers: 2 of 3 answer (for 7 s)",
    "starting 3 toy servers: warm-up (for 30 s)",
    "started 3 toy servers in 40 s",
]


@pytest.mark.parametrize(
    ("texts_at", "takes_s", "lines"),
    [
        ({0: "0 of 3 answer"}, 1.5, []),
        ({}, 90.0, ["starting 3 toy servers (for 2 s)", "started 3 toy servers in 2 min"]),
        ({0: "0 of 3 answer", 3: "1 of 3 answer", 4: "2 of 3 answer", 30: "warm-up"}, 40.0, SHOWN),
    ],
)
def test_a_pipe_gets_a_line_now_and_then(texts_at: dict[float, str], takes_s: float, lines: list[str]) -> None:
    assert lines_of_start(texts_at, takes_s) == lines
    assert lines_of_start(texts_at, takes_s, quiet=True) == []
    assert lines_of_start(texts_at, takes_s, what="") == []


def test_a_terminal_shows_it_all_the_time_and_is_left_as_it_was(terminal: Terminal) -> None:
    own, stream = terminal
    observer, clock, shown = Observer(stream), Clock(), ""
    starting = ServerStartup(observer, "3 toy servers", clock.wait, clock)

    def seen() -> bool:
        nonlocal shown
        starting.doing = "1 of 3 answer"
        shown += os.read(own, 65_536).decode()
        return "starting 3 toy servers: 1 of 3 answer (for" in shown

    with starting.shown():
        assert starting.wait(seen, 1000.0)
    observer.close()
    assert "Ctrl-C ends the run now" in shown + read_until(own, "\x1b[?25h")


@pytest.mark.parametrize(
    ("name", "overrides", "text"),
    [
        ("zmqfixed", {}, ""),
        ("kafka-fixed", {}, "1 kafka server"),
        ("kafka-fixed", {"server.count": 3}, "3 kafka servers"),
        ("kafka-fixed", {"kafka.bootstrap": "h:9092"}, ""),
    ],
)
def test_servers_are_told_that_a_run_starts_itself(name: str, overrides: dict[str, object], text: str) -> None:
    assert servers_of(resolve(name, overrides)) == text


# --- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["another's terminal", "a pipe", "closed"])
def test_what_is_no_terminal_in_the_foreground_is_left_alone(what: str, terminal: Terminal) -> None:
    end, modes = terminal[1].fileno(), termios.tcgetattr(terminal[1])
    pipe = os.pipe()
    os.close(pipe[0])
    if what != "a pipe":
        os.close(pipe[1])
    keys = Keyboard(end if what == "another's terminal" else pipe[1])
    assert not keys.open()
    assert keys.pressed() == ""
    keys.close()
    assert termios.tcgetattr(end) == modes


@pytest.fixture
def keys(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keyboard]:
    """Those of the terminal, which is taken for our own."""
    monkeypatch.setattr(Keyboard, "_is_foreground", lambda self: True)
    made = Keyboard(terminal[1].fileno())
    yield made
    made.close()


def types(terminal: Terminal, keys: bytes) -> None:
    os.write(terminal[0], keys)
    select.select([terminal[1]], [], [], SOON_S)


def test_what_was_typed_before_was_not_meant_for_us(terminal: Terminal, keys: Keyboard) -> None:
    types(terminal, b"\n")
    assert keys.open()
    assert keys.pressed() == ""


@pytest.mark.parametrize(
    ("typed", "key"), [(b"s", "s"), (b"ss", "s"), (b"E", "E"), (b"less", ""), (b"\x1bOS", ""), (b"\xc3\xa4", "")]
)
def test_only_a_key_by_itself_is_one(terminal: Terminal, keys: Keyboard, typed: bytes, key: str) -> None:
    assert keys.open()
    types(terminal, typed)
    assert keys.pressed() == key


@pytest.mark.parametrize(
    ("expected_s", "more", "terminal", "asks"),
    [
        (3601.0, {}, True, True),
        (3600.0, {}, True, False),
        (3601.0, {}, False, False),
        (3601.0, {"agreed": True}, True, False),
        (3601.0, {"resume": True}, True, False),
    ],
)
def test_a_run_of_more_than_an_hour_asks_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, expected_s: float, more: dict[str, Any], terminal: bool, asks: bool
) -> None:
    for name in ("stdin", "stderr"):
        monkeypatch.setattr(sys, name, Mock(isatty=lambda: terminal))
    mock = Mock()
    monkeypatch.setattr(click, "confirm", mock)
    RunRequest(Mock(), ClusterSpec(()), Path("run"), (), {}, **more).confirm(expected_s)
    assert [call.args for call in mock.call_args_list] == [("Begin a run of about 60 min?",)] * asks
