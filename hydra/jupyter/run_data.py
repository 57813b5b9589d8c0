"""The data of a report, from the run directory alone: read once, except large data, which is read for its plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hydra.events.event import StoredEvent
from hydra.events.warnings import HydraWarning
from hydra.measure.lag import Lags
from hydra.measure.loss_pattern import LossySubscriber
from hydra.measure.resources import HostSummary, busiest, summarise
from hydra.measure.step_result import StepResult
from hydra.model import AgentClock, BusyThread, Histogram, RunSetup, Scenario, StepPlan
from hydra.report.published_tables import PublishedTable, published_for
from hydra.report.row_warnings import warnings_of_rows
from hydra.report.run_setup import stored_setup
from hydra.store import subscriber_losses
from hydra.store.database import ENDED_KEY, ERROR_KEY, RunStore
from hydra.store.slo_results import SloResult, answer_of
from hydra.store.stored_scenario import stored_scenario
from hydra.store.subscriber_losses import GroupLoss
from hydra.sweep import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """The table of a run, and what decides about it.

    Attributes:
        directory: the run directory.
        metadata: the stored metadata of the run, by key.
        scenario: the scenario, without its secrets.
        rows: the rows of the table, computed from the steps.
        results: the stored steps.
        coming: the plan of the next step; None if the sweep is complete.
        setup: what was measured.
        answers: the results for the objectives, by epoch, of steps with a time series, even of those that never ended.
    """

    directory: Path
    metadata: Mapping[str, Any]
    scenario: Scenario
    rows: list[Row]
    results: list[StepResult]
    coming: StepPlan | None
    setup: RunSetup
    answers: Mapping[int, SloResult] = field(default_factory=dict)

    @property
    def ended(self) -> str:
        """How the run ended: ``finished``, ``interrupted``, ``failed``; "" if it was killed or is still running."""
        return str(self.metadata.get(ENDED_KEY, ""))

    @property
    def answer(self) -> SloResult | None:
        """Whether the last step with a time series met its objectives; None without objectives or such a step."""
        return self.answers[max(self.answers)] if self.answers and self.scenario.slo.objectives() else None

    @property
    def error(self) -> str:
        """Why the run failed; "" if it did not, or the reason was not stored."""
        return str(self.metadata.get(ERROR_KEY, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData(RunTable):
    """The data of a run's report.

    Attributes:
        notes: the warnings of each row.
        events: the events, oldest first.
        published: the published table of this experiment; None if there is none.
        servers: figures of each server, by the step's epoch and the server's name; only steps with such figures.
        clocks: clocks of agents, by the step's epoch and the agent; only steps with agents on other hosts than the
            controller's.
        hosts: samples of each host, by the step's epoch and the host; only steps with samples.
        host_of: the host of each agent in these steps.
        threads: the busiest threads of publishers and servers, by the step's epoch and the agent; only steps with
            samples.
    """

    notes: list[list[HydraWarning]]
    events: list[StoredEvent]
    published: PublishedTable | None
    servers: Mapping[int, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    clocks: Mapping[int, Mapping[str, AgentClock]] = field(default_factory=dict)
    hosts: Mapping[int, Mapping[str, HostSummary]] = field(default_factory=dict)
    host_of: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    threads: Mapping[int, Mapping[str, Sequence[BusyThread]]] = field(default_factory=dict)


def load(directory: Path | str) -> RunData:
    """Reads a run.

    Raises:
        RunDirectoryError: the directory holds no run, or a run that this Hydra cannot read.
    """
    path = Path(directory)
    with RunStore.open(path) as store:
        table = _table(path, store)
        epochs = [result.epoch for result in table.results]
        clocks = {epoch: store.clocks(epoch) for epoch in epochs}
        hosts = {epoch: its for epoch in epochs if (its := _hosts(store, epoch))}
        with store.reading():
            notes = warnings_of_rows(table.scenario, table.rows)
        return RunData(
            **{each.name: getattr(table, each.name) for each in fields(table)},
            notes=notes,
            events=store.events(),
            published=published_for(stored_scenario(table.metadata["scenario"])),
            servers={epoch: servers for epoch in epochs if (servers := store.servers(epoch))},
            clocks={epoch: of for epoch, of in clocks.items() if not all(clock.same_host for clock in of.values())},
            hosts=hosts,
            host_of={epoch: store.host_of(epoch) for epoch in hosts},
            threads={epoch: found for epoch in epochs if (found := _threads(store, epoch))},
        )


def table_of(directory: Path) -> RunTable:
    """Reads the table of a run, which is a small part of its data.

    Raises:
        RunDirectoryError: as :func:`load`.
    """
    with RunStore.open(directory) as store:
        return _table(directory, store)


def _table(path: Path, store: RunStore) -> RunTable:
    metadata, results = store.metadata(), store.results()
    with store.reading():
        resolved = stored_scenario(metadata["scenario"])
        scenario, setup = resolved.scenario, stored_setup(store, results)
        # The report shows one time series, and each takes megabytes.
        shown = store.time_series_epochs()[-1:] if scenario.has_time_series else ()
        answers = {epoch: answer for epoch in shown if (answer := answer_of(store, epoch))}
        rows, coming = resolved.sweep.rows(results), resolved.sweep.next(results)
    return RunTable(
        directory=path,
        metadata=metadata,
        scenario=scenario,
        rows=rows,
        results=results,
        coming=coming,
        setup=setup,
        answers=answers,
    )


def _hosts(store: RunStore, epoch: int) -> dict[str, HostSummary]:
    window_ns = store.window_ns(epoch)
    summaries = {host: summarise(samples, window_ns) for host, samples in store.host_samples(epoch).items()}
    return {host: summary for host, summary in summaries.items() if summary is not None}


def _threads(store: RunStore, epoch: int) -> dict[str, list[BusyThread]]:
    window_ns = store.window_ns(epoch)
    found = {agent: busiest(samples, window_ns) for agent, samples in store.threads(epoch).items()}
    return {agent: threads for agent, threads in found.items() if threads}


def histograms_of(run: RunData, epochs: Iterable[int]) -> list[Histogram]:
    """The latency of all messages that subscribers outside the cohort received, for each step."""
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
    """The losses of groups of subscribers in a step; the step of the range ``ids`` is the size of a group."""
    with RunStore.open(run.directory) as store:
        return store.ask(subscriber_losses.by_group, epoch, ids.start, ids.step)


def lossy_subscribers(run: RunData, epoch: int) -> tuple[list[LossySubscriber], int]:
    """The subscribers that lost messages in a step, and the largest number of messages that a publisher sent."""
    with RunStore.open(run.directory) as store:
        return store.ask(subscriber_losses.losers, epoch), store.ask(subscriber_losses.most_sent, epoch)


def plan_of(run: RunData, step: StepResult) -> StepPlan | None:
    """The plan of a step as it was executed; None if the rate changed and its changes were not stored."""
    with RunStore.open(run.directory) as store:
        series = store.course(step.epoch)
    if series is not None:
        return series[0]
    return None if run.scenario.has_time_series else step.plan
