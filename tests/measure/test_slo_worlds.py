"""How often ``hydra slo`` is wrong: simulated steps of systems that keep what is asked of them, and that do not.

Every test run has some steps of each; ``make soak`` has 250 of them (HYDRA_SLO), and docs/slo.md what they came to.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np
import pytest
from scipy.stats import binom

from hydra.measure.share_interval import DOUBT, BadCopies
from hydra.measure.slo import Word, objective_results, word
from hydra.measure.step_result import StepFigures
from hydra.model import Figure, Histogram, SloSpec, TimeSeriesFacts, TimeSeriesInterval
from tests.measure.slo_worlds import RATE, SUBSCRIBERS, WORLDS, World, bursts, jittery, lossy, regimes, stalled, step

STEPS: Final = int(os.environ.get("HYDRA_SLO", "25"))
SECONDS: Final = (1, 3, 5, 10, 60, 300, 600)
HELD: Final[dict[str, Figure]] = {"total_tx": 1e9, "rate_held": True, "latency_bound_us": 0.0}
Made = tuple[TimeSeriesFacts, list[TimeSeriesInterval], Histogram]


def seldom(wrong: int, of: int) -> bool:
    """Whether this many wrong answers may be chance, if one in twenty is."""
    return wrong <= int(binom.ppf(0.9999, of, DOUBT))


def answer(parts: np.ndarray[tuple[int], np.dtype[np.float64]], share: float) -> Word:
    """The interval of a share from the seconds of a step, with stalls of a second."""
    copies = float(RATE * SUBSCRIBERS)
    seconds = BadCopies(parts * copies, np.full(len(parts), copies), copies)
    return "yes" if seconds.above(share) <= DOUBT else "no" if seconds.within(share) <= DOUBT else "unknown"


@pytest.mark.tier("test")
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_a_yes_and_a_no_are_wrong_in_one_of_twenty_steps_at_most(world: World) -> None:
    share = 0.01
    for seconds in SECONDS:
        for part in (2.0, 1.0, 0.8):
            chance = np.random.default_rng([seconds, round(10 * part)])
            counter = Counter(answer(world(part * share, seconds, chance), share) for _ in range(STEPS))
            wrong = counter["no"] if part < 1 else counter["yes"] if part > 1 else max(counter["yes"], counter["no"])
            assert seldom(wrong, STEPS), (seconds, part, counter)
            if part == 1.0:
                continue
            # At twice the target, a yes is rarer still.
            assert part < 1 or counter["yes"] <= max(1, STEPS // 50), (seconds, counter)


@pytest.mark.tier("test")
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_what_is_far_from_its_target_is_told_in_time(world: World) -> None:
    chance = np.random.default_rng(1)
    good, bad = (Counter(answer(world(share, 600, chance), 0.01) for _ in range(STEPS)) for share in (0.002, 0.04))
    assert (good["yes"] > 0.4 * STEPS, bad["no"] > 0.9 * STEPS) == (True, True), (good, bad)


def test_stretches_of_many_seconds_count_as_few() -> None:
    chance = np.random.default_rng(2)
    counter = Counter(answer(regimes(0.02, 600, chance), 0.01) for _ in range(STEPS))
    assert seldom(counter["yes"], STEPS), counter


def answers(slo: SloSpec, make: Callable[[np.random.Generator], Made], steps: int) -> Counter[Word]:
    """What is answered to one objective, by whole steps."""
    counter: Counter[Word] = Counter()
    for seed in range(steps):
        facts, series, latency = make(np.random.default_rng(seed))
        lost = sum(interval.lost or 0 for interval in series)
        share = 100 * lost / (lost + sum(latency.counts[1::2]))
        figures = StepFigures.of(HELD | {"client_loss_pct": share, "undrained_pct": 0.0, "unknown_pct": 0.0})
        (*_, found) = objective_results(slo, figures, latency, facts, series)
        counter[word(found.holds)] += 1
        assert (found.measure_s is None) or found.measure_s > facts.duration_s
    return counter


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("slo", "make", "never"),
    [
        *((SloSpec(p99_ms=50.0), lambda c, s=s: stalled(s, c), "yes") for s in (1, 3, 5, 30)),
        *((SloSpec(loss_pct=0.1), lambda c, s=s: lossy(bursts(0.002, s, c)), "yes") for s in (10, 60, 300)),
        *((SloSpec(p99_ms=100.0), lambda c, s=s: jittery(s, c, 80.0, 300), "no") for s in (1, 10)),
        # Ten messages a second, each late for all of its hundred subscribers.
        (SloSpec(p99_ms=50.0), lambda c: late_for_all(30, c, 0.02), "yes"),
    ],
)
def test_whole_steps_are_not_answered_wrongly(
    slo: SloSpec, make: Callable[[np.random.Generator], Made], never: Word
) -> None:
    steps = max(STEPS // 2, 10)
    text = answers(slo, make, steps)
    assert seldom(text[never], steps), text


def late_for_all(seconds: int, chance: np.random.Generator, share: float) -> Made:
    """Ten messages a second to a hundred subscribers."""
    messages = 10 * seconds
    latency_s = np.where(chance.random(messages) < share, 0.1, 0.005)
    return step(np.arange(messages) / 10, latency_s, seconds, subscribers=100)
