"""Systems with a known answer for searches to find: what they lose is left to chance, as it is in real ones.

Each holds its rate R with an expected shortfall of the target and not more. None is of the estimator's own family but
``compound``: bursts replayed from a recording, heavy tails, a chance that saturates, a plain capacity, one that varies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.measure.column import LossBursts
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Scenario, StepPlan
from hydra.sweep.interface import Row
from hydra.sweep.rate_search import Search
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_spec import SearchSpec

TARGET: Final = 0.005
RUN_SPREAD: Final = 0.04
"""Standard deviation of log R between runs."""
DRIFT: Final = 0.1
"""R drifts by up to half of this, in logarithm, either way from its middle during a search."""
STEPS_OF_A_SEARCH: Final = 60
BETWEEN_STEPS_S: Final = 0.25

Bursts = Sequence[float]
Floats = npt.NDArray[np.float64]
Losing = Callable[[float, float, np.random.Generator], Bursts]
"""Takes log(rate / R), the length of the step in seconds, and chance; gives the bursts, seconds of traffic each."""


def _poisson(u: float, seconds: float, chance: np.random.Generator, mean_s: float, slope: float) -> int:
    return int(chance.poisson(TARGET / mean_s * exp(min(slope * u, 6.0)) * seconds))


def compound(u: float, seconds: float, chance: np.random.Generator) -> Bursts:
    """Poisson bursts of exponential size."""
    return list(chance.exponential(0.15, _poisson(u, seconds, chance, 0.15, 8.0)))


def steep(u: float, seconds: float, chance: np.random.Generator) -> Bursts:
    """A slope as steep as 15."""
    return list(chance.exponential(0.15, _poisson(u, seconds, chance, 0.15, 15.0)))


def shallow(u: float, seconds: float, chance: np.random.Generator) -> Bursts:
    """A slope of 2: three times the loss at 1.7 times the rate."""
    return list(chance.exponential(0.05, _poisson(u, seconds, chance, 0.05, 2.0)))


def heavy(u: float, seconds: float, chance: np.random.Generator) -> Bursts:
    """Log-normal sizes with a standard deviation of 1.2 in logarithm."""
    sigma, mean_s = 1.2, 0.08
    return list(chance.lognormal(log(mean_s) - sigma**2 / 2, sigma, _poisson(u, seconds, chance, mean_s, 6.0)))


def logistic(u: float, seconds: float, chance: np.random.Generator) -> Bursts:
    """At most one burst a second, with a logistic chance."""
    mean_s = 0.12
    at_r = TARGET / mean_s
    p = 1 / (1 + exp(-(log(at_r / (1 - at_r)) + 7 * u)))
    return list(chance.gamma(1.5, mean_s / 1.5, chance.binomial(max(round(seconds), 1), p)))


def capacity(u: float, seconds: float, chance: np.random.Generator) -> Bursts:
    """What is above a capacity is lost, all the time, measured to 0.2 %."""
    lost = 1 - (1 - TARGET) / exp(u)
    lost = max(lost + float(chance.normal(0, 0.002)), 0.0) if lost > 0 else 0.0
    return [lost] * max(round(seconds), 1) if lost > 0 else []


def varying(u: float, seconds: float, chance: np.random.Generator) -> Bursts:
    """A capacity that differs by 8 % from second to second."""
    of = _capacity_of(0.08) * np.exp(chance.normal(0, 0.08, max(round(seconds), 1)))
    return [float(x) for x in 1 - of / exp(u) if x > 0]


@cache
def _capacity_of(spread: float) -> float:
    """The median capacity, as a share of R, with which the expected loss at R is the target; by bisection."""
    z = np.random.default_rng(0).normal(0, spread, 200_000)
    low, high = 0.5, 2.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(1 - middle * np.exp(z), 0).mean() > TARGET else (low, middle)
    return low


RECORDING: Final = Path(__file__).parent / "recorded_bursts.json"


@cache
def _recorded() -> tuple[list[float], list[list[Bursts]], float]:
    """Log of the recorded rates, the bursts of each step of one second at each, and log R.

    Between two rates a step is drawn from either, with weights by distance; so the expected shortfall is linear in
    between, and R is where it passes the target for the last time.
    """
    recorded = json.loads(RECORDING.read_text())["steps"]
    logs = [log(float(rate)) for rate in recorded]
    steps = [list(found) for found in recorded.values()]
    means = [float(np.mean([sum(step) for step in found])) for found in steps]
    above = max(i for i, mean in enumerate(means) if mean <= TARGET) + 1
    share = (TARGET - means[above - 1]) / (means[above] - means[above - 1])
    return logs, steps, logs[above - 1] + share * (logs[above] - logs[above - 1])


def replayed(u: float, seconds: float, chance: np.random.Generator) -> Bursts:
    """Whole steps of native subscribers as they were recorded, at the rates where they were."""
    logs, steps, log_r = _recorded()
    found: list[float] = []
    for _ in range(max(round(seconds), 1)):
        at = float(np.interp(u + log_r, logs, range(len(logs))))
        rung = int(at) + int(chance.random() < at - int(at))
        found += steps[rung][int(chance.integers(len(steps[rung])))]
    return found


FAMILIES: Final[tuple[Losing, ...]] = (replayed, compound, steep, shallow, heavy, logistic, capacity, varying)


def seconds_of(seconds: float) -> int:
    """How many whole seconds a step is taken for."""
    return max(round(seconds), 1)


class World:
    """What a step loses, by its rate and the time.

    Attributes:
        rate: R in messages/s, as a mean over runs and over the search; None: no rate holds.
        capacity: a rate that R is near to, messages/s.
    """

    def __init__(self, seed: int, name: str = "") -> None:
        self.chance = np.random.default_rng([seed, sum((name or type(self).__name__).encode())])
        self.capacity = exp(self.chance.uniform(log(5e3), log(1e5)))
        self.rate: float | None = self.capacity
        self.phase_s = float(self.chance.uniform(0, 1000))

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        """The bursts of a step that begins ``now_s`` seconds after the first one: seconds of traffic each."""
        raise NotImplementedError

    def bursts(self, per_s: float, seconds: float, mean_s: float) -> list[float]:
        """Poisson bursts of exponential size."""
        return list(self.chance.exponential(mean_s, self.chance.poisson(per_s * seconds)))

    def rising(self, rate: float, seconds: float, mean_s: float, slope: float) -> list[float]:
        """Bursts of which there are more at higher rates; at the capacity they cost the target."""
        return self.bursts(TARGET / mean_s * exp(min(slope * log(rate / self.capacity), 6.0)), seconds, mean_s)

    def messages(self, rate: float, seconds: float, share: float) -> Floats:
        """The share lost in each second where each of 30 subscribers' messages is lost with a chance of its own."""
        sent = max(int(30 * rate), 1)
        return np.asarray(self.chance.binomial(sent, share, seconds_of(seconds)) / sent)


class Family(World):
    """A family, as one run meets it, which drifts a little during the search."""

    def __init__(self, losing: Losing, seed: int) -> None:
        super().__init__(seed, losing.__name__)
        self._losing = losing
        self._run = float(self.chance.normal(0, RUN_SPREAD))
        self._drift = float(self.chance.uniform(-DRIFT, DRIFT))
        self._steps = 0

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        self._steps += 1
        now = self._run + self._drift * (min(self._steps / STEPS_OF_A_SEARCH, 1.0) - 0.5)
        return self._losing(log(rate / self.capacity) - now, seconds, self.chance)


@dataclass
class System:
    """A world with steps that fail.

    Args:
        world: how it loses.
        failing: the share of steps that fail for reasons of their own.
    """

    world: World
    failing: float = 0.03
    steps: int = 0
    now_s: float = 0.0
    measured_s: float = 0.0

    def measure(self, plan: StepPlan) -> StepResult:
        """What a step comes to."""
        self.steps += 1
        assert plan.settings.rate != "max"
        rate, seconds = plan.settings.rate, plan.duration_s
        begin_s = self.now_s + plan.rest_s
        self.now_s = begin_s + seconds + BETWEEN_STEPS_S
        self.measured_s += seconds
        if self.world.chance.random() < self.failing:
            return StepResult(self.steps, plan, "failed", reason="a client hung")
        bursts = self.world.lost_bursts(rate, seconds, begin_s)
        lost = min(sum(bursts) / seconds, 0.98)
        scale = lost * seconds / sum(bursts) if bursts else 1.0
        sizes = LossBursts(tuple(b * scale for b in bursts))
        return StepResult(
            self.steps, plan, "ok", StepFigures.of({"bursts_s": sizes, "avg_rx_rate_pps": rate * (1 - lost)})
        )


def searched(system: System, step_s: float = 1.0, **settings: float) -> Row:
    """The row of a search for the rate within the target."""
    return played(system, step_s, **settings)[0]


def played(system: System, step_s: float = 1.0, **settings: float) -> tuple[Row, list[StepResult]]:
    """The row of a search, and its steps."""
    search = replace(SearchSpec(start_rate=500.0, series=("loss",)), **settings)  # type: ignore[arg-type]
    scenario = Scenario("z", "zmq", "native", "rates", SearchSweep(clients=(30,), duration_s=step_s, search=search))
    sweep, results = Search(scenario, search), list[StepResult]()
    while (plan := sweep.next(results)) is not None:
        results.append(system.measure(plan))
    (row,) = sweep.rows(results)
    return row, results
