"""The state of an engine with a driver, without either: its calls and events, and a clock that a test moves."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from hydra.engine.driver_engine import EngineState
from hydra.model import GroupEvent

S = TypeVar("S", bound=EngineState)


class Stated(Generic[S]):
    """A state at a time of its own, in s."""

    def __init__(self, state: S) -> None:
        self.now = 0.0
        self.state = state

    def drive(self, kind: str, **fields: Any) -> None:
        """The driver's messages."""
        self.state.handle({"kind": kind, **fields}, self.now)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.state.tick(self.now)

    def calls(self, kind: str = "") -> list[dict[str, Any]]:
        """Those since the last time, of one kind or of all; all are taken."""
        calls, self.state.calls = self.state.calls, []
        return [call for call in calls if kind in ("", call["call"])]

    def events(self) -> list[GroupEvent]:
        """Those since the last time."""
        events, self.state.events = self.state.events, []
        return events


def calls_made(work: Callable[[], object]) -> int:
    """How many functions are called, those of C too: it grows as the time does, and no machine changes it."""
    calls = itertools.count()
    before = sys.getprofile()
    sys.setprofile(lambda _, event, __: next(calls) if event in ("call", "c_call") else None)
    try:
        work()
    finally:
        sys.setprofile(before)
    return next(calls)
