"""Steps well below the answer: which subscriber loses alone at every rate, and what is lost at every start."""

from __future__ import annotations

import pytest

from hydra.measure.column import LoneLossySubscriber, LossBursts
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Figure, Settings, StepPlan
from hydra.sweep.search_answer import bursts_of, lone_loser, start_lost_ms, telling

TARGET = 0.005


def step(rate: float, **figures: Figure) -> StepResult:
    return StepResult(1, StepPlan(6, Settings(rate=rate), 1.0), "ok", StepFigures.of(figures))


def lone(client: int, rate: float = 1e4, pct: float = 5.0) -> StepResult:
    return step(
        rate,
        lone_loser=client,
        lone_loser_loss_pct=pct,
        bursts_s=LossBursts((0.0083,)),
        rest_bursts_s=LossBursts((0.001,)),
    )


def test_steps_at_half_of_the_answer_or_less_tell_and_without_one_all_do() -> None:
    steps = [step(rate) for rate in (1000.0, 8000.0, 2000.0, 2500.0, 4000.0)]
    assert telling(steps, 4000.0) == [steps[0], steps[2]]
    assert telling(steps, None) == steps


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([lone(3), lone(3, pct=4.0), lone(3, pct=6.0)], LoneLossySubscriber(3, 0.05)),
        # One step with another result, of five; of four.
        ([*[lone(3)] * 4, step(1e4)], LoneLossySubscriber(3, 0.05)),
        ([*[lone(3)] * 3, lone(5)], None),
        # At 100/s five of a hundred messages are too few to stand out.
        ([*[lone(3)] * 3, *[step(100.0)] * 9], LoneLossySubscriber(3, 0.05)),
        ([lone(3)] * 2, None),
        # No more than the others.
        ([lone(3, pct=0.4)] * 9, None),
        ([step(1e4)] * 9, None),
    ],
)
def test_a_subscriber_loses_alone_that_does_so_in_nearly_every_step(
    steps: list[StepResult], found: LoneLossySubscriber | None
) -> None:
    assert lone_loser(steps, TARGET) == found


@pytest.mark.parametrize(
    ("lost_ms", "bursts", "found"),
    [
        ([2.0, 2.0, 2.0, 3.0], (0.002,), 2.0),
        ([2.0, 2.0, 2.0, 2.0, 0.0], (0.002,), 2.0),
        ([2.0, 2.0, 0.0, 0.0], (0.002,), None),
        ([2.0, 2.0], (0.002,), None),
        # As much is lost elsewhere; and a loss of 2 % all the time has 2 ms in the first tenth of a second.
        ([2.0] * 4, (0.002, 0.003), None),
        ([2.0] * 4, (0.02,), None),
        # A hundredth of what is allowed.
        ([0.05] * 4, (0.00005,), None),
    ],
)
def test_what_is_lost_at_nearly_every_start_and_hardly_elsewhere_is_lost_at_the_start(
    lost_ms: list[float], bursts: tuple[float, ...], found: float | None
) -> None:
    assert start_lost_ms([step(1e4, start_lost_ms=ms, bursts_s=LossBursts(bursts)) for ms in lost_ms], TARGET) == found
    assert start_lost_ms([], TARGET) is None


@pytest.mark.parametrize(
    ("it", "bursts"),
    [
        (lone(3), (0.001,)),
        # Of six, it has a sixth of 3 % of the second; what is beyond is that of five.
        (step(50.0, bursts_s=LossBursts((0.004,))), ()),
        (step(1e4, bursts_s=LossBursts((0.1, 0.305))), (0.48,)),
        (step(1e4, bursts_s=LossBursts((1.0,))), (1.0,)),
        (step(1e4, bursts_s=LossBursts()), ()),
    ],
)
def test_the_bursts_without_a_subscriber_are_those_of_the_others(it: StepResult, bursts: tuple[float, ...]) -> None:
    assert bursts_of(it, LoneLossySubscriber(3, 0.03)) == pytest.approx(bursts)


def test_the_bursts_of_all_are_as_they_were_told() -> None:
    assert bursts_of(lone(3)) == (0.0083,)
