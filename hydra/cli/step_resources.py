"""Resources that the steps of a run used, read from the run's database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra.analysis.costs import HostUse, StepUsage
from hydra.analysis.host_resources import HOST_CPU, HOST_MEMORY, HOST_NETWORK
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.errors import UsageError
from hydra.events.value_formatting import number as number_text
from hydra.measure.rates import SECOND_NS
from hydra.measure.resources import HostSummary, summarise
from hydra.measure.step_result import StepResult
from hydra.model import HostSample, RunSetup, Scenario, number
from hydra.report.run_setup import stored_setup
from hydra.store.database import RunStore
from hydra.store.stored_scenario import stored_scenario
from hydra.sweep import steps_of
from hydra.sweep.cleanness import flaws


@dataclass(frozen=True, slots=True)
class RunUsage:
    """A run's steps as a fit needs them.

    Attributes:
        directory: the run directory.
        scenario: the scenario of the run.
        groups: the measured steps, by the settings that vary (one group, named "", if none varies).
        setup: what the run measured.
        local: whether all clients were on one host, so no message passed a network interface.
        unknown: of each resource of hosts whose use is not known, by its name, the reason.
    """

    directory: Path
    scenario: Scenario
    groups: Mapping[str, tuple[StepUsage, ...]]
    setup: RunSetup
    local: bool
    unknown: Mapping[str, str]


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
        setup = stored_setup(store, results)
        with store.reading():
            resolved = stored_scenario(store.metadata()["scenario"])
            scenario = resolved.scenario
            for result in _whole(scenario, results):
                facts = _facts(store, resolved, result)
                local = local and facts.network_bytes is None
                name = ", ".join(f"{each} {result.plan.value(each)}" for each in scenario.sweep.varied)
                groups.setdefault(name, []).append(facts)
        quotas = [machine.quota_cpus for machine in store.machines().values() if machine.quota_cpus]
    if not groups:
        raise UsageError(
            f"{directory} has no step that was measured with all of its subscribers", "choose another run: hydra runs"
        )
    every = {name: tuple(steps) for name, steps in groups.items()}
    return RunUsage(directory, scenario, every, setup, local, _unknown(every, local=local, quotas=quotas))


def _unknown(groups: Mapping[str, Sequence[StepUsage]], *, local: bool, quotas: Sequence[float]) -> dict[str, str]:
    """The reasons why the use of a resource of hosts is not known, by the name of the resource."""
    known = {name for steps in groups.values() for step in steps for name in step.hosts}
    found = dict.fromkeys((HOST_CPU, HOST_MEMORY, HOST_NETWORK), "the run has no samples of it")
    found = {name: reason for name, reason in found.items() if name not in known}
    if quotas:
        found[HOST_CPU] = f"a quota of {number_text(min(quotas))} CPUs limits its processes, which a host does not show"
    if local:
        found[HOST_NETWORK] = "all clients were on one host"
    elif HOST_NETWORK in found and HOST_MEMORY in known:
        found[HOST_NETWORK] = "the speed of no link is known"
    return found


def _whole(scenario: Scenario, results: list[StepResult]) -> list[StepResult]:
    good = [
        result
        for result in results
        if result.status == "ok"
        and result.plan.clients > 0
        and result.plan.cohort.kind == "none"
        and not result.figures.cohort.cohort_clients
        and not result.figures.loss.without_report
        and (result.figures.rates.aggregate_pps or 0) > 0
    ]
    return steps_of(scenario).at_full_load(good)


def _facts(store: RunStore, resolved: ResolvedScenario, result: StepResult) -> StepUsage:
    scenario = resolved.scenario
    start_ns, stop_ns = store.window_ns(result.epoch)
    seconds = (stop_ns - start_ns) / SECOND_NS
    sums, figures, plan = store.role_sums(result.epoch), result.figures, result.plan
    publisher, subscriber = sums.get("publisher", {}), sums.get("subscriber", {})
    servers = len(store.servers(result.epoch))
    busy_pct = figures.servers.server_cpu_pct
    samples = store.host_samples(result.epoch)
    found = ((host, summarise(each, (start_ns, stop_ns))) for host, each in samples.items())
    hosts = {host: summary for host, summary in found if summary is not None}
    sent = sum(use.sent_bytes_s for host in hosts.values() for use in host.interfaces.values())
    return StepUsage(
        clients=plan.clients,
        publishers=scenario.publishers if plan.publishers is None else plan.publishers,
        servers=servers,
        direct=resolved.system.servers is None,
        seconds=seconds,
        rate=None if plan.settings.rate == "max" else float(plan.settings.rate),
        held=number(figures.shares.requested_rate) is not None and not flaws(figures),
        throughput=figures.rates.aggregate_pps or 0.0,
        sent=publisher.get("messages", 0.0),
        received=subscriber.get("messages", 0.0),
        received_bytes=subscriber.get("bytes", 0.0),
        subscriber_cpu_s=subscriber.get("cpu_s", 0.0),
        publisher_cpu_s=publisher.get("cpu_s", 0.0),
        publisher_memory_bytes=publisher.get("max_rss_bytes", 0.0),
        server_cpu_s=None if busy_pct is None else busy_pct / 100 * servers * seconds,
        network_bytes=sent * seconds if len(set(store.host_of(result.epoch).values())) > 1 else None,
        hosts=_host_uses(samples, hosts),
    )


def _host_uses(samples: Mapping[str, Sequence[HostSample]], hosts: Mapping[str, HostSummary]) -> dict[str, HostUse]:
    """The use of each resource on the host that used most of what it has, by the name of the resource."""
    uses: dict[str, list[HostUse]] = {HOST_CPU: [], HOST_MEMORY: [], HOST_NETWORK: []}
    for host, summary in hosts.items():
        total = samples[host][-1].counters.memory_total
        uses[HOST_CPU].append(HostUse(host, summary.cpu_mean_pct / 100, float(len(summary.cores_pct))))
        uses[HOST_MEMORY].append(HostUse(host, summary.memory_used_max_bytes / total, float(total)))
        for link in summary.interfaces.values():
            if link.share:
                speed = max(link.received_bytes_s, link.sent_bytes_s) / link.share
                uses[HOST_NETWORK].append(HostUse(host, link.share, speed))
    return {name: max(its, key=lambda use: use.share) for name, its in uses.items() if its}
