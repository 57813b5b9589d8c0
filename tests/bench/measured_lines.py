"""Lines whose sides are functions, and machines that are quiet or busy."""

from __future__ import annotations

from typing import Any

from bench import machine
from bench.line import Line, Side, at_least


class Quiet(machine.OtherProcesses):
    """A machine on which nothing else runs."""

    def look(self, seconds: float = 0.0) -> float:
        return seconds


class Busy(Quiet):
    """A machine whose other processes use half of the CPU."""

    def mean(self) -> float:
        return 0.5


def line(own: Side, bare: Side | None = None, **more: Any) -> Line:
    return Line("clients", "a : b", more.pop("unit", "messages/s"), at_least(0.9), own, bare, "In turns.", **more)
