"""What is wrong with a scenario of raw ZMQ that its types cannot see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hydra.model import Scenario
from hydra.system import Refusal
from hydra.zmqtest.footprints import ZMTP
from hydra.zmqtest.settings import ZmqNative, ZmqSettings

_OTHER: Final = "or use client native"


def refusals(scenario: Scenario) -> Iterator[Refusal]:
    """Every refusal: the key's path, what is wrong, what to try."""
    if scenario.client == ZMTP:
        yield from _of_zmtp(scenario)
    if scenario.native.system.get("publisher") == "pyzmq":
        yield from _of_pyzmq(scenario)


def _of_pyzmq(scenario: Scenario) -> Iterator[Refusal]:
    """What a publisher of pyzmq has not."""
    usual, native = ZmqNative(), scenario.native
    given = [n for n in ("io_threads", "transport", "sndbuf", "secure") if native.system[n] != getattr(usual, n)]
    for name in [*given, *(["pacing"] if native.pacing != "smooth" else [])]:
        what = "publishers of pyzmq have no such option"
        yield ("native", name), what, "leave it out, or use native.publisher = native"


def _of_zmtp(scenario: Scenario) -> Iterator[Refusal]:
    """What only libzmq's subscribers can do."""
    bounded = " (native.rcvbuf sets the kernel's buffer)"
    for name, usual, why, instead in (
        ("rcvhwm", ZmqSettings().rcvhwm, "that could have a high-water mark", bounded),
        ("receive_rate", None, "so that it cannot be a slow reader", ""),
    ):
        if any(value != usual for value in scenario.values_of(name)):
            where = ("sweep", "vary", name) if name in scenario.sweep.vary else ("settings", name)
            yield where, f"client zmtp has no queue of its own {why}", f"leave it out{instead}, {_OTHER}"
    if scenario.native.system.get("secure"):
        what = "client zmtp speaks ZMTP with the mechanism NULL only, not CURVE"
        yield ("native", "secure"), what, f"leave it out, {_OTHER}"
    if any(event.kind == "slow" for event in scenario.events):
        what = "client zmtp has no queue of its own, so it cannot be a slow reader"
        yield ("events",), what, f"use kind = 'gone', {_OTHER}"
    if scenario.sweep.search is not None and "slow" in scenario.sweep.search.series:
        what = "client zmtp has no queue of its own, so it cannot be a slow reader"
        yield ("sweep", "search", "series"), what, f"leave out 'slow' (--no-flaky), {_OTHER}"
