"""How far the start of servers is: what a pipe gets of it, and what a terminal shows."""

from __future__ import annotations

import io
import os
import pty
from collections.abc import Callable, Iterator

import pytest

from hydra.config.scenario import load_scenario
from hydra.run.progress import Observer
from hydra.run.starting import Starting, servers_of
from hydra.system import Waiting


class Clock:
    """Time that passes by being waited for."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def waits(self, step_s: float) -> Waiting:
        def wait(condition: Callable[[], bool], timeout_s: float) -> bool:
            until_s = self.now_s + timeout_s
            while not condition():
                if self.now_s >= until_s:
                    return False
                self.now_s += step_s
            return True

        return wait


def told(told_at: dict[float, str], takes_s: float, *, quiet: bool = False, what: str = "3 toy servers") -> list[str]:
    """The lines of a start that takes so long, and says what it is doing from some moments on."""
    stream, clock = io.StringIO(), Clock()
    starting = Starting(Observer(stream, quiet=quiet), what, clock.waits(0.25), clock)

    def up() -> bool:
        starting.doing = next((says for at_s, says in reversed(told_at.items()) if clock.now_s >= at_s), "")
        return clock.now_s >= takes_s

    with starting.shown():
        assert starting.wait(up, 1000.0)
    assert starting.wait(lambda: True, 1.0)  # of something else, later
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("told_at", "takes_s", "lines"),
    [
        ({0: "0 of 3 answer"}, 1.5, []),
        ({}, 90.0, ["starting 3 toy servers (for 2 s)", "started 3 toy servers in 2 min"]),
        (
            {0: "0 of 3 answer", 3: "1 of 3 answer", 4: "2 of 3 answer", 30: "warm-up"},
            40.0,
            [
                "starting 3 toy servers: 0 of 3 answer (for 2 s)",
                "starting 3 toy servers: 2 of 3 answer (for 7 s)",
                "starting 3 toy servers: warm-up (for 30 s)",
                "started 3 toy servers in 40 s",
            ],
        ),
    ],
)
def test_a_pipe_gets_a_line_now_and_then(told_at: dict[float, str], takes_s: float, lines: list[str]) -> None:
    assert told(told_at, takes_s) == lines
    assert told(told_at, takes_s, quiet=True) == []
    assert told(told_at, takes_s, what="") == []


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, io.TextIOWrapper]]:
    monkeypatch.setenv("TERM", "xterm")
    ours, end = pty.openpty()
    with os.fdopen(end, "w", buffering=1) as stream:
        yield ours, stream
    os.close(ours)


def test_a_terminal_shows_it_all_the_time_and_is_left_as_it_was(terminal: tuple[int, io.TextIOWrapper]) -> None:
    ours, stream = terminal
    observer, clock, shown = Observer(stream), Clock(), ""
    starting = Starting(observer, "3 toy servers", clock.waits(0.25), clock)

    def seen() -> bool:
        nonlocal shown
        starting.doing = "1 of 3 answer"
        shown += os.read(ours, 65_536).decode()
        return "starting 3 toy servers: 1 of 3 answer (for" in shown

    with starting.shown():
        assert starting.wait(seen, 1000.0)
    observer.close()
    while "\x1b[?25h" not in shown:
        shown += os.read(ours, 65_536).decode()
    assert "Ctrl-C ends the run now" in shown


@pytest.mark.parametrize(
    ("name", "overrides", "said"),
    [
        ("zmqfixed", {}, ""),
        ("kafka-fixed", {}, "1 kafka server"),
        ("kafka-fixed", {"server.count": 3}, "3 kafka servers"),
        ("kafka-fixed", {"kafka.bootstrap": "h:9092"}, ""),
    ],
)
def test_servers_are_told_that_a_run_starts_itself(name: str, overrides: dict[str, object], said: str) -> None:
    assert servers_of(load_scenario(name, overrides)) == said
