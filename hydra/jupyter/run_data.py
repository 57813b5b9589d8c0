"""A run as the notebooks see it, from its directory alone: read once, and what may be large when it is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.events.event import StoredEvent
from hydra.events.warnings import EarlierRates, ForeignRates, HydraWarning
from hydra.measure.lag import Lags
from hydra.measure.loss_pattern import LossySubscriber
from hydra.measure.resources import HostSummary, busiest, summarise
from hydra.model import AgentClock, BusyThread, Histogram, Scenario, StepPlan, StepResult
from hydra.report.published_tables import PublishedTable, published_for
from hydra.report.row_warnings import warnings_of
from hydra.store import subscriber_losses
from hydra.store.database import ENDED_KEY, ERROR_KEY, RunStore
from hydra.store.format_upgrade import searched_otherwise, stored_rows, stored_scenario
from hydra.store.slo_results import SloResult, answer_of
from hydra.store.subscriber_losses import GroupLoss
from hydra.sweep import Row, Sweep


@dataclass(frozen=True, slots=True)
class RunData:
    """Everything that a report is made of.

    Attributes:
        directory: where it was read from.
        metadata: what was recorded of the run, by key.
        scenario: what was asked for, without its secrets.
        rows: the table, as the sweep makes it of the steps; of a run that this Hydra would search otherwise, as stored.
        notes: for every row, what has to be known before its figures are believed.
        results: the steps themselves.
        coming: the step that would be next, None if the sweep is complete.
        events: what happened, oldest first.
        published: the table that this experiment was published with, None if it never was.
        servers: what each server told of a step, by the step's epoch and the server's name; steps of which one did.
        clocks: of a step's agents, by the step's epoch and the agent; steps with agents on other hosts than the
            controller's.
        hosts: what each host did in a step, by the step's epoch and the host; steps in which some host was sampled.
        host_of: of such a step, the host of each agent.
        threads: the busiest threads of publishers and servers, by the step's epoch and the agent; likewise.
        answers: what came of the steps whose seconds were asked for, by epoch, also of those that never ended.
        earlier: what has to be known of the rows of an earlier version, None if there is nothing.
    """

    directory: Path
    metadata: Mapping[str, Any]
    scenario: Scenario
    rows: list[Row]
    notes: list[list[HydraWarning]]
    results: list[StepResult]
    coming: StepPlan | None
    events: list[StoredEvent]
    published: PublishedTable | None
    servers: Mapping[int, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    clocks: Mapping[int, Mapping[str, AgentClock]] = field(default_factory=dict)
    hosts: Mapping[int, Mapping[str, HostSummary]] = field(default_factory=dict)
    host_of: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    threads: Mapping[int, Mapping[str, Sequence[BusyThread]]] = field(default_factory=dict)
    answers: Mapping[int, SloResult] = field(default_factory=dict)
    earlier: HydraWarning | None = None

    @property
    def ended(self) -> str:
        """How the run ended: ``finished``, ``interrupted``, ``failed``; "" if it was killed or still goes on."""
        return str(self.metadata.get(ENDED_KEY, ""))

    @property
    def error(self) -> str:
        """Why the run failed, "" if it did not or nobody kept it."""
        return str(self.metadata.get(ERROR_KEY, ""))


def load(directory: Path | str) -> RunData:
    """Reads a run.

    Raises:
        RunDirectoryError: the directory holds no run, or one that this Hydra cannot read.
    """
    path = Path(directory)
    with RunStore.open(path) as store:
        metadata, results, events = store.metadata(), store.results(), store.events()
        servers = {r.epoch: told for r in results if (told := store.servers(r.epoch))}
        clocks = {r.epoch: store.clocks(r.epoch) for r in results}
        hosts = {r.epoch: its for r in results if (its := _hosts(store, r.epoch))}
        host_of = {epoch: store.host_of(epoch) for epoch in hosts}
        threads = {r.epoch: found for r in results if (found := _threads(store, r.epoch))}
        with store.reading():
            resolved = stored_scenario(metadata["scenario"])
            scenario = resolved.scenario
            # One is shown, and each takes megabytes.
            shown = store.time_series_epochs()[-1:] if scenario.has_time_series else ()
            answers = {epoch: answer for epoch in shown if (answer := answer_of(store, epoch))}
            earlier: HydraWarning | None = EarlierRates() if searched_otherwise(metadata["scenario"]) else None
            coming: StepPlan | None = None
            try:
                rows, coming = (stored_rows(path), None) if earlier else _played(resolved.sweep, results)
            except ValueError:
                if not scenario.sweep.decided:
                    raise
                rows, earlier = stored_rows(path), ForeignRates()
            notes = [warnings_of(row, scenario, rows) for row in rows]
    if metadata.get(ENDED_KEY) == "finished":
        # A version that tried failed steps only once has finished what this one would still try.
        coming = None
    return RunData(
        directory=path,
        metadata=metadata,
        scenario=scenario,
        rows=rows,
        notes=notes,
        results=results,
        coming=coming,
        events=events,
        published=published_for(resolved),
        servers=servers,
        clocks={epoch: of for epoch, of in clocks.items() if not all(clock.same_host for clock in of.values())},
        hosts=hosts,
        host_of=host_of,
        threads=threads,
        answers=answers,
        earlier=earlier,
    )


def _hosts(store: RunStore, epoch: int) -> dict[str, HostSummary]:
    window_ns = store.window_ns(epoch)
    summaries = {host: summarise(samples, window_ns) for host, samples in store.host_samples(epoch).items()}
    return {host: summary for host, summary in summaries.items() if summary is not None}


def _threads(store: RunStore, epoch: int) -> dict[str, list[BusyThread]]:
    window_ns = store.window_ns(epoch)
    found = {agent: busiest(samples, window_ns) for agent, samples in store.threads(epoch).items()}
    return {agent: threads for agent, threads in found.items() if threads}


def _played(sweep: Sweep, results: list[StepResult]) -> tuple[list[Row], StepPlan | None]:
    return sweep.rows(results), sweep.next(results)


def histograms_of(run: RunData, epochs: Iterable[int]) -> list[Histogram]:
    """Of each step the latency of all messages that the subscribers outside its cohort received."""
    with RunStore.open(run.directory) as store:
        return [store.histogram(epoch) for epoch in epochs]


def lags_of(run: RunData, epoch: int) -> Lags:
    """See :func:`hydra.store.subscriber_losses.lags`."""
    with RunStore.open(run.directory) as store:
        return store.ask(subscriber_losses.lags, epoch)


def subscribers_of(run: RunData) -> range:
    """See :func:`hydra.store.subscriber_losses.ids`."""
    with RunStore.open(run.directory) as store:
        return store.ask(subscriber_losses.ids)


def losses_of(run: RunData, epoch: int, ids: range) -> list[GroupLoss]:
    """What groups of subscribers lost in a step; the step of the ids is the size of a group."""
    with RunStore.open(run.directory) as store:
        return store.ask(subscriber_losses.by_group, epoch, ids.start, ids.step)


def losers_of(run: RunData, epoch: int) -> tuple[list[LossySubscriber], int]:
    """The subscribers that lost something in a step, and the messages of the publisher that sent most."""
    with RunStore.open(run.directory) as store:
        return store.ask(subscriber_losses.losers, epoch), store.ask(subscriber_losses.most_sent, epoch)


def plan_of(run: RunData, step: StepResult) -> StepPlan | None:
    """The plan of a step as it was carried out; None where the rate changed and nobody kept how."""
    with RunStore.open(run.directory) as store:
        course = store.course(step.epoch)
    if course is not None:
        return course[0]
    return None if run.scenario.has_time_series else step.plan
