"""Resources that the steps of a run used, read from the run's database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from hydra.analysis.costs import StepUsage
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.errors import UsageError
from hydra.measure.column_names import AGGREGATE, GONE, RATE_HELD, VERDICT
from hydra.measure.rates import SECOND_NS
from hydra.measure.resources import summarise
from hydra.model import Points, Scenario, StepResult, number
from hydra.store.database import RunStore
from hydra.store.stored_scenario import stored_scenario
from hydra.sweep import kind_of

_SERVER_CPU_PCT: Final = "server_cpu_pct"


@dataclass(frozen=True, slots=True)
class RunUsage:
    """A run's steps as a fit needs them.

    Attributes:
        directory: the run directory.
        resolved: the scenario of the run.
        groups: the measured steps, by the settings that vary (one group, named "", if none varies).
        local: whether all clients were on one host, so no message passed a network interface.
    """

    directory: Path
    resolved: ResolvedScenario
    groups: Mapping[str, tuple[StepUsage, ...]]
    local: bool

    @property
    def scenario(self) -> Scenario:
        """The scenario that was run."""
        return self.resolved.scenario

    @property
    def steps(self) -> tuple[StepUsage, ...]:
        """The steps of all groups."""
        return tuple(step for group in self.groups.values() for step in group)


def read_run(directory: Path) -> RunUsage:
    """The steps of a run that were measured with all subscribers.

    Steps with a cohort, and steps in which a subscriber died or fell silent, are left out. In a search only the steps
    that look for the highest received rate count: for each client count the fastest.

    Raises:
        RunDirectoryError: the directory holds no run, or a run that this Hydra cannot read.
        UsageError: no step was measured with all subscribers.
    """
    groups: dict[str, list[StepUsage]] = {}
    local = True
    with RunStore.open(directory) as store:
        results = store.results()
        with store.reading():
            resolved = stored_scenario(store.metadata()["scenario"]).with_tables()
            scenario = resolved.scenario
            for result in _whole(scenario, results):
                facts = _facts(store, resolved, result)
                local = local and facts.network_bytes is None
                groups.setdefault(_name(scenario, result), []).append(facts)
    if not groups:
        raise UsageError(
            f"{directory} has no step that was measured with all of its subscribers", "choose another run: hydra runs"
        )
    return RunUsage(directory, resolved, {name: tuple(steps) for name, steps in groups.items()}, local)


def _whole(scenario: Scenario, results: list[StepResult]) -> list[StepResult]:
    good = [
        result
        for result in results
        if result.status == "ok"
        and result.plan.clients > 0
        and result.plan.cohort.kind == "none"
        and not number(result.figures.get("cohort_clients"))
        and not any(number(result.figures.get(column)) for column in GONE)
        and (number(result.figures.get(AGGREGATE)) or 0) > 0
    ]
    return kind_of(scenario).at_full_load(good)


def _name(scenario: Scenario, result: StepResult) -> str:
    """The settings that vary between the steps of a table, such as ``msg_batch 200``."""
    return ", ".join(f"{name} {result.plan.value(name)}" for name in scenario.sweep.varied)


def _facts(store: RunStore, resolved: ResolvedScenario, result: StepResult) -> StepUsage:
    scenario = resolved.scenario
    start_ns, stop_ns = store.window_ns(result.epoch)
    seconds = (stop_ns - start_ns) / SECOND_NS
    sums, figures, plan = store.role_sums(result.epoch), result.figures, result.plan
    publisher, subscriber = sums.get("publisher", {}), sums.get("subscriber", {})
    servers = len(store.servers(result.epoch))
    busy_pct = number(figures.get(_SERVER_CPU_PCT))
    samples = store.host_samples(result.epoch)
    hosts = [summary for each in samples.values() if (summary := summarise(each, (start_ns, stop_ns))) is not None]
    sent = sum(use.sent_bytes_s for host in hosts for use in host.interfaces.values())
    return StepUsage(
        clients=plan.clients,
        publishers=scenario.publishers if plan.publishers is None else plan.publishers,
        servers=servers,
        direct=resolved.system.servers is None,
        seconds=seconds,
        rate=None if plan.settings.rate == "max" else float(plan.settings.rate),
        held=bool(figures.get(RATE_HELD)) and bool(figures.get("passed")),
        limit=str(figures.get(VERDICT) or ""),
        throughput=number(result.figures.get(AGGREGATE)) or 0.0,
        sent=publisher.get("messages", 0.0),
        received=subscriber.get("messages", 0.0),
        received_bytes=subscriber.get("bytes", 0.0),
        subscriber_cpu_s=subscriber.get("cpu_s", 0.0),
        publisher_cpu_s=publisher.get("cpu_s", 0.0),
        publisher_memory_bytes=publisher.get("max_rss_bytes", 0.0),
        server_cpu_s=None if busy_pct is None else busy_pct / 100 * servers * seconds,
        network_bytes=sent * seconds if len(set(store.host_of(result.epoch).values())) > 1 else None,
        swing=swing(plan.load, plan.duration_s),
    )


def swing(load: Points, duration_s: float) -> float:
    """The highest rate of a load divided by its mean rate; 1 if the load is constant.

    Args:
        load: the points of the load, as in ``StepPlan``.
        duration_s: length of the step in seconds.
    """
    within = [(begin, rate) for begin, rate in load if begin <= duration_s]
    if not within:
        return 1.0
    within.append((duration_s, within[-1][1]))
    messages = sum((end - begin) * (first + last) / 2 for (begin, first), (end, last) in pairwise(within))
    highest = max(rate for _, rate in within)
    return highest * duration_s / messages if messages > 0 else 1.0
