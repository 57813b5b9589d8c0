"""Ladders played in simulated worlds: how near to the limit of a world the rate is that was held.

The limit of a world is the highest rate at which at least half of many steps of 10 s are clean. ``python -m
tests.sweep.held_worlds 1000`` plays 1,000 tables of each world and prints the shares of docs/measurements.md.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from math import exp, inf, log
from typing import Final

import numpy as np

from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Figure, Scenario, StepPlan
from hydra.sweep import Row
from hydra.sweep.held import HeldSweep
from hydra.sweep.held_rates import HeldRates
from hydra.sweep.held_spec import HeldSpec
from hydra.sweep.ladder import Ladder
from hydra.sweep.search_spec import SearchSpec
from tests.sweep.simulated import TARGET, Bursts, World
from tests.sweep.worlds import WORLDS, BufferedStalls, Exhausted, Regimes, WarmsUp, above, some

HELD_S: Final = 10.0
CLIENTS: Final = 30
OVERHEAD_S: Final = 0.5
"""What a step takes beside its length."""
MOST: Final = 3.0
"""How far above its capacity a publisher of a world can send."""


class Stop(World):
    """Nothing arrives for two seconds, once in the first minute."""

    lasts_s = 2.0

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.at_s = float(self.chance.uniform(0, 60))

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        stopped = max(0.0, min(now_s + seconds, self.at_s + self.lasts_s) - max(now_s, self.at_s))
        return some(above(self.capacity, rate, seconds, self.chance)) + ([stopped] if stopped else [])


class SlowSecond(World):
    """One second in thirty carries only 70 %."""

    chance_of, share = 1 / 30, 0.7

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        slow = self.chance.random(round(seconds)) < self.chance_of
        return some(np.maximum(1 - self.capacity * np.where(slow, self.share, 1.0) / rate, 0))


class BusyMachine(World):
    """Other processes take 40 % of its capacity in half of the time, for 7 s on average."""

    lasts_s, taken = 7.0, 0.4
    busy, until_s, others = False, 0.0, 0.0

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        found, busy = [], 0
        for second in range(round(seconds)):
            while now_s + second >= self.until_s:
                self.busy = not self.busy
                self.until_s = max(self.until_s, now_s - 60) + float(self.chance.exponential(self.lasts_s))
            busy += self.busy
            found.append(max(1 - self.capacity * (1 - self.taken * self.busy) / rate, 0.0))
        self.others = self.taken * busy / round(seconds)
        return [lost for lost in found if lost]


class Bursts03(World):
    """Bursts of 0.3 s, with a slope of 8."""

    mean_s = 0.3

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        return self.rising(rate, seconds, self.mean_s, 8)


class Bursts005(Bursts03):
    """Bursts of 0.05 s, with a slope of 8."""

    mean_s = 0.05


ALL: Final[dict[str, Callable[[int], World]]] = {
    **WORLDS, **{kind.__name__: kind for kind in (Stop, SlowSecond, BusyMachine)}
}  # fmt: skip


def _other(of: type[World], **constants: float) -> Callable[[int], World]:
    """The same world with other constants."""
    return type(f"Other{of.__name__}", (of,), constants)


OTHERS: Final[dict[str, Callable[[int], World]]] = {
    "bursts of 0.05 s": Bursts005,
    "bursts of 0.3 s": Bursts03,
    "exhausted for 20 s": _other(Exhausted, lasts_s=20.0),
    "buffered stalls of 0.3 s every 7 s": _other(BufferedStalls, stall_s=0.3, period_s=7.0, buffer_s=0.29),
    "buffered stalls of 0.5 s every 20 s": _other(BufferedStalls, stall_s=0.5, period_s=20.0, buffer_s=0.5),
    "regimes of 7 s": _other(Regimes, lasts_s=7.0),
    "regimes of 60 s": _other(Regimes, lasts_s=60.0),
    "warms up for 20 s": _other(WarmsUp, lasts_s=20.0),
    "warms up for 120 s": _other(WarmsUp, lasts_s=120.0),
    "a stop of 5 s": _other(Stop, lasts_s=5.0),
    "a second of 50 % in 10": _other(SlowSecond, chance_of=0.1, share=0.5),
    "busy for 3 s": _other(BusyMachine, lasts_s=3.0),
    "busy for 20 s, 25 %": _other(BusyMachine, lasts_s=20.0, taken=0.25),
}
"""Worlds with other constants than those for which the method was made."""


def world_of(name: str, seed: int, run: int = 0) -> World:
    """The system with this seed, as one of its runs meets it: at another time, and with other chance."""
    make = {**ALL, **OTHERS}[name]
    first = make(seed)
    if not run:
        return first
    world = make(seed + 100_000 * run)
    ratio = first.capacity / world.capacity
    world.capacity *= ratio
    world.rate = world.rate and world.rate * ratio
    return world


def lost(world: World, rate: float, seconds: float, now_s: float) -> float:
    """The share that a step loses."""
    return float(min(sum(world.lost_bursts(rate, seconds, now_s)) / seconds, 0.98))


@dataclass
class LadderSystem:
    """A world with the figures by which a step is clean or not."""

    world: World
    now_s: float = 0.0
    epoch: int = 0
    results: list[StepResult] = field(default_factory=list)

    def measure(self, plan: StepPlan) -> StepResult:
        """What a step comes to."""
        self.epoch += 1
        full = plan.settings.rate == "max"
        rate = MOST * self.world.capacity if plan.settings.rate == "max" else plan.settings.rate
        seconds = min(plan.duration_s, (plan.settings.messages or inf) / rate)
        share = lost(self.world, rate, max(seconds, 1.0), self.now_s)
        self.now_s += seconds + OVERHEAD_S
        figures: dict[str, Figure] = {
            "requested_rate": "max" if full else rate,
            "rate_held": None if full else True,
            "passed": share <= TARGET,
            "loss_target_pct": 100 * TARGET,
            "client_loss_pct": 100 * share,
            "avg_tx_rate_pps": rate,
            "avg_rx_rate_pps": rate * (1 - share),
            "aggregate_pps": CLIENTS * rate * (1 - share),
            "total_rx": rate * (1 - share) * seconds,
            "wall_s": seconds + OVERHEAD_S,
            "host_others_pct": 100 * getattr(self.world, "others", 0.0),
        }
        return StepResult(self.epoch, plan, "ok", StepFigures.of(figures))


def table(world: World) -> tuple[Row, list[StepResult]]:
    """The row of a client count, and its steps."""
    spec = HeldSpec()
    search = SearchSpec(start_rate=1000.0, series=("loss",))
    sweep = HeldSweep(clients=(CLIENTS,), duration_s=HELD_S, held=spec, search=search)
    steps = HeldRates(Scenario("z", "zmq", "native", "rates", sweep), spec, search)
    system, results = LadderSystem(world), list[StepResult]()
    while (plan := steps.next(results)) is not None:
        results.append(system.measure(plan))
    (row,) = steps.rows(results)
    return row, results


@cache
def limit_ratio(name: str, steps: int = 1000) -> float:
    """The limit of a world as a share of its capacity; 0: at no rate is half of the steps clean.

    Each step is that of a world of its own, at a time of its own.
    """

    def clean(ratio: float, steps: int) -> float:
        good = 0
        for seed in range(steps):
            world = world_of(name, 10_000 + seed)
            good += lost(world, ratio * world.capacity, HELD_S, 5.0 + 60.0 * seed / steps) <= TARGET
        return good / steps

    ratio = 4.0
    while ratio > 0.004 and clean(ratio, steps // 10) < 0.5:
        ratio /= 1.1
    if ratio <= 0.004:
        return 0.0
    low, high = log(ratio / 1.2), log(ratio * 1.2)
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (middle, high) if clean(exp(middle), steps) >= 0.5 else (low, middle)
    return exp(low)


def rungs_off(name: str, seed: int, *, run: int = 0, of: int = 1000) -> tuple[str, int | None, float]:
    """The answer of a table, its rungs above the limit (None: there is no rate), and its seconds.

    Args:
        name: that of the world.
        seed: of the system.
        run: the number of its run.
        of: how many steps its limit is computed from.
    """
    world = world_of(name, seed, run)
    row, _ = table(world)
    rate, ladder = row["max_rate_below_0_5pct_drop_pps"], Ladder(10)
    limit = limit_ratio(name, of) * world.capacity
    answer = str(row["loss_answer"])
    if not isinstance(rate, float):
        return answer, None, float(str(row["wall_s"]))
    if not limit:
        return answer, 99, float(str(row["wall_s"]))
    return answer, ladder.at_most(rate) - ladder.at_most(limit), float(str(row["wall_s"]))


def shares(name: str, tables: int) -> str:
    """The shares of a world, in a line: of two runs of each system."""
    pairs = [[rungs_off(name, seed, run=run) for run in range(2)] for seed in range(tables // 2)]
    found = [each for pair in pairs for each in pair]
    off = [rungs for _, rungs, _ in found if rungs is not None]
    near = sum(abs(rungs) <= 1 for rungs in off) / len(found)
    over = sum(rungs > 1 for rungs in off) / len(found)
    both = [(a, b) for (_, a, _), (_, b, _) in pairs if a is not None and b is not None]
    alike = sum(abs(a - b) <= 1 for a, b in both) / max(len(both), 1)
    answers = Counter(answer for answer, *_ in found)
    seconds = sorted(each for *_, each in found)
    return (
        f"{name:35} limit {limit_ratio(name):5.2f}  near {near:6.1%}  above {over:6.1%}  alike {alike:4.0%}  "
        f"held {len(off) / len(found):4.0%}  {seconds[len(seconds) // 2]:4.0f} s ({seconds[-1]:.0f})  {dict(answers)} "
        f"{sorted(Counter(off).items())}"
    )


if __name__ == "__main__":
    how_many = int(sys.argv[1]) if len(sys.argv) > 1 else 250
    with ProcessPoolExecutor() as pool:
        names = sys.argv[2:] or [*ALL, *OTHERS]
        for line in pool.map(shares, names, [how_many] * len(names)):
            sys.stdout.write(f"{line}\n")
