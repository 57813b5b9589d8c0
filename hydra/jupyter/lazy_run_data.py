"""What plots read of a run when they are drawn: it may be large, and most of it is never shown."""

from __future__ import annotations

from collections.abc import Iterable

from hydra.jupyter.run_data import Run
from hydra.measure.lag import Lags
from hydra.measure.loss_by_subscriber import Loser
from hydra.model import Histogram, StepPlan, StepResult
from hydra.store import subscriber_losses
from hydra.store.database import RunStore
from hydra.store.subscriber_losses import GroupLoss


def histograms_of(run: Run, epochs: Iterable[int]) -> list[Histogram]:
    """Of each step the latency of all messages that the subscribers outside its cohort received."""
    with RunStore.open(run.directory) as store:
        return [store.histogram(epoch) for epoch in epochs]


def lags_of(run: Run, epoch: int) -> Lags:
    """See :func:`hydra.store.subscriber_losses.lags`."""
    with RunStore.open(run.directory) as store:
        return store.ask(subscriber_losses.lags, epoch)


def subscribers_of(run: Run) -> range:
    """See :func:`hydra.store.subscriber_losses.ids`."""
    with RunStore.open(run.directory) as store:
        return store.ask(subscriber_losses.ids)


def losses_of(run: Run, epoch: int, ids: range) -> list[GroupLoss]:
    """What groups of subscribers lost in a step; the step of the ids is the size of a group."""
    with RunStore.open(run.directory) as store:
        return store.ask(subscriber_losses.by_group, epoch, ids.start, ids.step)


def losers_of(run: Run, epoch: int) -> tuple[list[Loser], int]:
    """The subscribers that lost something in a step, and the messages of the publisher that sent most."""
    with RunStore.open(run.directory) as store:
        return store.ask(subscriber_losses.losers, epoch), store.ask(subscriber_losses.most_sent, epoch)


def plan_of(run: Run, step: StepResult) -> StepPlan | None:
    """The plan of a step as it was carried out; None where the rate changed and nobody kept how."""
    with RunStore.open(run.directory) as store:
        course = store.course(step.epoch)
    if course is not None:
        return course[0]
    return None if run.scenario.has_course else step.plan
