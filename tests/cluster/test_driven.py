"""What engines with a driver have in common, over a driver that only notes its calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import pytest

from hydra.engine.driver_engine import DriverEngine, DriverProcess
from hydra.engine.driver_pipe import Message
from hydra.errors import ClusterError
from hydra.model import Agent, Group, GroupEvent, Launch

STOP_WITHIN_S = 5.0


class NotingDriver:
    """Gives its messages, a batch at each call."""

    def __init__(self, *batches: list[Message], ends: bool) -> None:
        self.batches = list(batches)
        self.ends = ends
        self.closed = False
        self.hung_up = 0
        self.sent: list[list[str]] = []

    def send(self, calls: Iterable[Message]) -> None:
        self.sent.append([call["call"] for call in calls])

    def receive(self, wait_s: float = 0.0) -> list[Message]:
        if not self.batches:
            self.closed = self.ends
        return self.batches.pop(0) if self.batches else []

    def ended(self) -> str:
        return "the process ended"

    def close(self) -> None:
        self.hung_up += 1


class NotingState:
    """Answers every message with a call and an event of its kind."""

    def __init__(self) -> None:
        self.calls: list[Message] = []
        self.events: list[GroupEvent] = []
        self.ends: list[str] = []

    def agents(self) -> list[Agent]:
        return []

    def kill(self, groups: Iterable[str], now: float) -> None:
        self.calls += [{"call": f"kill {group}"} for group in groups]

    def handle(self, message: Message, now: float) -> None:
        self.calls.append({"call": f"answer {message['kind']}"})
        self.events.append(GroupEvent(message["kind"], "running", "n1"))

    def tick(self, now: float) -> None:
        self.calls.append({"call": f"tick {now:g}"})

    def driver_ended(self, why: str) -> None:
        self.ends.append(why)


class Subject(DriverEngine[NotingState]):
    """An engine whose clock continues by a second whenever it is read."""

    def __init__(self, *batches: list[Message], ends: bool = True) -> None:
        self.driver, self.state, self.now = NotingDriver(*batches, ends=ends), NotingState(), 0.0
        super().__init__(cast("DriverProcess", self.driver), self.state, "192.0.2.1", STOP_WITHIN_S, self._next)

    def _next(self) -> float:
        self.now += 1.0
        return self.now

    def _launch(self, groups: Sequence[Group], now: float) -> list[Launch]:
        self.state.calls.append({"call": f"launch {len(groups)}"})
        return []


def test_what_the_driver_says_is_answered_and_told_once() -> None:
    subject = Subject([{"kind": "a"}, {"kind": "b"}], [])
    assert [event.group for event in subject.events()] == ["a", "b"]
    assert subject.driver.sent == [["answer a", "answer b", "tick 2"]]
    assert subject.events() == []


def test_a_launch_and_a_kill_are_sent_at_once_behind_what_was_heard_first() -> None:
    subject = Subject([{"kind": "a"}], [])
    subject.launch([])
    subject.kill(["g"])
    assert subject.driver.sent == [["answer a", "tick 2"], ["launch 0"], ["kill g"]]


def test_a_driver_that_ends_unasked_is_told_with_its_last_words_heard() -> None:
    subject = Subject([{"kind": "last"}])
    subject.agents()
    assert subject.state.ends == []
    subject.agents()
    assert subject.state.ends == ["the process ended"]
    assert [event.group for event in subject.state.events] == ["last"]


def test_the_end_waits_for_the_driver_asks_nothing_more_of_it_and_comes_once() -> None:
    subject = Subject([{"kind": "a"}])
    subject.close()
    subject.close()
    assert subject.driver.sent == [["stop"], [], []], "what could not go before is sent, and nothing is added"
    assert (subject.state.ends, subject.driver.hung_up) == ([], 1)
    with pytest.raises(ClusterError, match="is closed"):
        subject.launch([])


def test_a_driver_that_does_not_stop_is_left_to_itself_in_time() -> None:
    subject = Subject(ends=False)
    subject.close()
    assert subject.driver.hung_up == 1
    assert subject.now <= 2 * STOP_WITHIN_S
