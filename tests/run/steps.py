"""Steps over a channel that loses messages, and clocks of other hosts."""

from __future__ import annotations

from collections.abc import Callable

from hydra.measure.observation import Observation
from hydra.model import Settings, StepPlan
from hydra.monitor.step_progress import StepProgress
from hydra.wire.messages import FromClient, FromController
from tests.channel import Channel, Loss

PLAN = StepPlan(clients=3, settings=Settings(rate=100.0), duration_s=1.0)


def losing(
    client: int | None, kind: type, command: str = "", *, first: int = 1, last: int = 10**9, before_epoch: int = 10**9
) -> Loss:
    """Loses the messages of a kind from or to a client, or every client, from the first such message of an epoch on."""

    def loses(whose: int, message: FromController | FromClient, nth: int) -> bool:
        right = isinstance(message, kind) and getattr(message, "command", "") == command
        early = getattr(message, "epoch", 0) < before_epoch
        return right and early and client in (whose, None) and first <= nth <= last

    return loses


Clock = Callable[[int], int]


def clock(ahead_ns: int, rate_ppm: int = 0) -> Clock:
    """One that was so far ahead at the beginning of all time of a channel."""
    return lambda at_ns: at_ns + ahead_ns + (at_ns - 10**12) * rate_ppm // 10**6


def measured(channel: Channel, tick: Callable[[StepProgress], None] = lambda _: None) -> Observation:
    return channel.stepper().measure(PLAN, tick)
