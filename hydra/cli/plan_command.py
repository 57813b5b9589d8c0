"""`hydra plan`: how many agents, publishers and servers a number of clients needs, and what limits first."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import click
import psutil

from hydra.analysis.capacity_plan import SHARE, AgentSize, CapacityPlan, PlanItem, ResourceUse, extrapolated, together
from hydra.analysis.costs import PUBLISHER_CPU, SERVER_CPU, SUBSCRIBER_CPU, measured_cost, per_listener
from hydra.analysis.declared_costs import Cost, Costs
from hydra.cli.fit_command import count, figure
from hydra.cli.step_usage import RunUsage, read_run
from hydra.config.cluster import load_cluster
from hydra.config.machine_limits import MachineLimits, read_limits
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.resource_needs import CONTROLLER_BYTES_PER_CLIENT, CONTROLLER_MEMORY_BYTES, needs, topic_share
from hydra.config.scenario import resolve
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE, UsageError
from hydra.events.value_formatting import counted, number
from hydra.model import ClusterSpec, Scenario
from hydra.report.table import fitted, tabled, terminal_width
from hydra.system import SystemSpec

_HEADERS_BYTES: Final = 90
"""Header bytes of a segment with one message: TCP with timestamps 32, IPv4 20, Ethernet with preamble and gap 38."""
_CONTROLLER: Final = "docs/limits.md, simulated"
_CONTROLLER_REPORT_S: Final = Cost(39e-6, _CONTROLLER, 1_000_000)
"""Seconds that the controller needs to receive and store a subscriber's report."""
_CONTROLLER_MEMORY: Final = Cost(float(CONTROLLER_BYTES_PER_CLIENT), _CONTROLLER, 1_000_000)
_REPORTS_S: Final = 600.0
"""Maximum time in seconds that storing the reports of a step may take."""
_FOOTPRINT_CLIENTS: Final = 40
"""The number of subscribers with which every footprint was measured (docs/limits.md)."""
_UNTOLD: Final = "not measured, neither in the runs that you named nor by Hydra's authors"
_UNKNOWN: Final = "this figure was never measured: name a run with --from"
_STEADY: Final = 1.05
"""A load counts as constant if its highest rate is at most this many times its mean."""
_MEMORY_SHARE: Final = 0.9
"""The share of an agent's memory that clients may use."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The input of `hydra plan`; None for a value that the user did not give."""

    clients: int
    rate: float
    scenario: str | None
    implementation: str | None
    runs: tuple[Path, ...]
    cores: float | None
    memory_bytes: float | None
    network_bytes_s: float | None
    config: Path | None
    replaced: Mapping[str, object]


def show_plan(asked: PlanRequest, usual: str, as_json: bool) -> int:
    """Prints the plan and returns the exit code: 3 if the workload is not possible, or a number is unknown.

    Args:
        asked: the input of the command.
        usual: the scenario if the user names neither a scenario nor a run.
        as_json: whether JSON is printed in place of text.

    Raises:
        UsageError: a run is of another system or implementation, or lacks what a plan needs.
    """
    runs = [read_run(directory) for directory in asked.runs]
    resolved, machine = _resolved(asked, runs, usual), read_limits()
    host, cluster = _host(asked, machine), load_cluster(asked.config)
    scenario, spec = resolved.scenario, resolved.system
    named = asked.implementation or asked.scenario or runs
    known = [name for name, costs in spec.costs.items() if costs.subscriber_message_s] if not named else []
    options = [replace(scenario, client=name) for name in known] or [scenario]
    plans = [(_of(asked, replace(resolved, scenario=each), runs, host, cluster), each) for each in options]
    plan, scenario = min(plans, key=lambda pair: pair[0].parts[0].needed(asked.clients) or 0)
    if as_json:
        click.echo(json.dumps(_told(plan, scenario, host), indent=1, allow_nan=False))
    else:
        click.echo(fitted("\n".join(_text(plan, scenario, spec, host)), terminal_width()))
    return EXIT_GOOD if plan.fits and not plan.endless else EXIT_INCOMPLETE


def _resolved(asked: PlanRequest, runs: Sequence[RunUsage], usual: str) -> ResolvedScenario:
    """The scenario to plan for: the named one, that of the runs, or the usual one.

    Raises:
        UsageError: the runs differ in system or implementation, among themselves or from the scenario.
    """
    replaced = {**asked.replaced, "sweep.clients": [1]}
    if asked.implementation:
        replaced["client"] = asked.implementation
    if asked.scenario or not runs:
        resolved = resolve(asked.scenario or usual, replaced)
    else:
        if asked.replaced:
            raise UsageError(
                f"{', '.join(asked.replaced)}: the plan is for what {runs[0].directory} ran",
                "leave out --set, or name a scenario",
            )
        resolved = runs[0].resolved
        if asked.implementation and asked.implementation != runs[0].scenario.client:
            told = f"{runs[0].directory} was measured with {runs[0].scenario.client}"
            raise UsageError(
                f"--implementation {asked.implementation}: {told}",
                "leave out one of the two",
            )
    scenario = resolved.scenario
    for run in runs:
        its, ours = (run.scenario.system, run.scenario.client), (scenario.system, scenario.client)
        if its != ours:
            raise UsageError(
                f"{run.directory} was measured with {' '.join(its)}, and the plan is for {' '.join(ours)}",
                "name runs of one system and one implementation",
            )
    return resolved


def _host(asked: PlanRequest, machine: MachineLimits) -> AgentSize:
    speeds = [stats.speed for name, stats in psutil.net_if_stats().items() if name != "lo" and stats.isup]
    speed = max((s for s in speeds if s > 0), default=0) * 1e6 / 8
    tasks = [limit for limit in (machine.pid_max, machine.threads_max, machine.cgroup_pids_max) if limit]
    return AgentSize(
        cores=asked.cores or float(len(os.sched_getaffinity(0))),
        memory_bytes=asked.memory_bytes or float(psutil.virtual_memory().total),
        network_bytes_s=asked.network_bytes_s or speed or None,
        open_files=machine.nofile_hard,
        tasks=min(tasks, default=4_194_304),
        ports=machine.ports_last - machine.ports_first + 1,
    )


def _of(
    asked: PlanRequest, resolved: ResolvedScenario, runs: Sequence[RunUsage], host: AgentSize, cluster: ClusterSpec
) -> CapacityPlan:
    """The plan for one implementation."""
    scenario, spec = resolved.scenario, resolved.system
    costs = spec.costs.get(scenario.client, Costs())
    steps = [step for run in runs for step in run.steps]
    source = ", ".join(str(run.directory) for run in runs)
    ran = max([costs.ran, _FOOTPRINT_CLIENTS, *(step.clients for step in steps)])
    footprint = Cost(0.0, "memory of each process: docs/limits.md", ran)
    rate, nobody = asked.rate, Cost(0.0, _UNTOLD if runs else _UNKNOWN, 0)
    subscriber = _chosen(
        measured_cost(SUBSCRIBER_CPU, steps, rate, source), _a_second(costs.subscriber_message_s, rate)
    )
    publisher = _chosen(measured_cost(PUBLISHER_CPU, steps, rate, source), _a_second(costs.publisher_message_s, rate))
    listener = per_listener(steps, source)
    server = measured_cost(SERVER_CPU, steps, rate, source)
    direct = spec.servers is None
    alone = spec.implementations[scenario.client]

    def use(name: str, unit: str, amount: float | None, has: float | None, cost: Cost | None) -> ResourceUse:
        return ResourceUse(name, unit, None if cost is not None and cost.unlimited else amount, has, cost or nobody)

    widest = float(max(host.open_files - alone.files, 1))
    publishers = PlanItem("publishers", "a publisher", ())
    if direct:
        its_cores = costs.publisher_cores.value * SHARE if costs.publisher_cores else None
        one = use("CPU", "cores", publisher.value if publisher else None, its_cores, publisher)
        files = use(
            "open files", "files", 1.0, widest, replace(footprint, source="this machine's hard limit of open files")
        )
        publishers = PlanItem("publishers", "a publisher", (one, files))
    serving = PlanItem("servers", "a server", ())
    if spec.servers is not None:
        each = spec.servers
        at_server = replace(
            footprint, source="memory of each process: docs/limits.md; this machine's hard limit of open files"
        )
        files = use("open files", "files", float(each.connections), float(host.open_files - each.files), at_server)
        one = use("CPU", "cores", server.value if server else None, host.cores * SHARE, server)
        serving = PlanItem("servers", "a server", (one, files))
    senders = (publishers.needed(asked.clients) or 1) if direct else scenario.publishers
    peers = senders if direct else serving.needed(asked.clients) or 1
    packed = max(scenario.native.clients_per_process, alone.packed)
    scenario = replace(scenario, native=replace(scenario.native, clients_per_process=packed))
    groups = -(-asked.clients // cluster.most_in_group(packed)) + senders
    packing = replace(resolved, scenario=scenario)
    each_sends = rate / topic_share(scenario) / senders
    whole = needs(packing, asked.clients, groups, cluster.fork_window, senders, each_sends)
    memory = (whole.memory_bytes - CONTROLLER_MEMORY_BYTES) / asked.clients - CONTROLLER_BYTES_PER_CLIENT
    # A measured cost per subscriber replaces the system's declared one.
    held = listener.value - spec.listener_bytes if direct and listener and not listener.unlimited else 0.0
    # A publisher sends each message to a server once: with servers, its cost does not grow with the clients. Servers
    # are counted apart, as if each had its own host.
    processors = together([subscriber, publisher]) if direct else subscriber
    on_wire = round(scenario.settings.mean_bytes) + costs.frame_bytes + _HEADERS_BYTES
    carried = Cost(0.0, f"{on_wire} bytes a message alone in its segment: arithmetic", asked.clients)
    agents = PlanItem(
        "agents",
        "an agent",
        (
            use("CPU", "cores", processors.value if processors else None, host.cores * SHARE, processors),
            use("memory", "bytes", memory + held, host.memory_bytes * _MEMORY_SHARE, footprint),
            use("network", "bytes/s", rate * on_wire, host.network_bytes_s and host.network_bytes_s * SHARE, carried),
            use("process ids, threads", "tasks", whole.threads / asked.clients, float(host.tasks), footprint),
            use(
                "local ports",
                "ports",
                1.0,
                float(host.ports) * peers,
                replace(footprint, source="this machine's range"),
            ),
        ),
    )
    controller = PlanItem(
        "controller",
        "the controller",
        (
            use("memory", "bytes", _CONTROLLER_MEMORY.value, host.memory_bytes * _MEMORY_SHARE, _CONTROLLER_MEMORY),
            use("seconds for reports", "s", _CONTROLLER_REPORT_S.value, _REPORTS_S, _CONTROLLER_REPORT_S),
        ),
        at_most=1,
    )
    return CapacityPlan(
        asked.clients, rate, tuple(part for part in (agents, publishers, serving, controller) if part.uses)
    )


def _chosen(from_runs: Cost | None, constant: Cost | None) -> Cost | None:
    """The cost fitted from runs; the constant if the fit is missing or too wide."""
    if from_runs is None or (from_runs.too_wide and constant is not None):
        return constant
    return from_runs


def _a_second(cost: Cost | None, rate: float) -> Cost | None:
    """CPU time per second, computed from the CPU time per message."""
    return None if cost is None else replace(cost, value=cost.value * rate)


def _text(plan: CapacityPlan, scenario: Scenario, spec: SystemSpec, host: AgentSize) -> Iterator[str]:
    size = round(scenario.settings.mean_bytes)
    network = (
        "a link of unknown speed (--network)"
        if host.network_bytes_s is None
        else _amount(host.network_bytes_s, "bit/s")
    )
    yield (
        f"{counted(plan.clients, 'subscriber')} of {spec.title} ({scenario.client}), {number(plan.rate)} messages/s to "
        f"each: {figure(plan.clients * plan.rate)} messages/s of {size} bytes"
    )
    if (share := topic_share(scenario)) < 1:
        yield (
            f"a subscriber has {number(100 * share)} % of the topics, so all publishers together send "
            f"{figure(plan.rate / share)} messages/s"
        )
    yield (
        f"an agent has {counted(host.cores, 'core')}, {_amount(host.memory_bytes, 'bytes')}, {network}, "
        f"{count(host.open_files)} open files a process"
    )
    yield ""
    for part, use in plan.endless:
        yield (
            f"{part.name}: the number is unknown: {use.name} of {part.one} has no upper limit by {use.cost.source}; "
            "measure more client counts, larger ones, or this rate"
        )
    for part in plan.parts:
        needed, first = part.needed(plan.clients), part.first
        if needed is None or first is None:
            continue
        end = first.ends_at or 0
        why = f"{first.name} of {part.one} runs out first, at {counted(end, 'client')}{_beyond(first, plan)}"
        missing = f"; not known: {', '.join(part.unknown())}" if part.unknown() else ""
        at_least = "at least " if missing else ""
        if part.at_most is not None and needed > part.at_most:
            yield f"{part.name}: at most {part.at_most} is possible, but {count(needed)} would be needed; {why}"
        else:
            yield f"{part.name}: {at_least}{count(needed)}; {why}{missing}"
    if plan.first is not None:
        part, use = plan.first
        end = use.ends_at or 0
        yield f"what breaks first: {use.name} of {part.one}, at {counted(end, 'client')}{_beyond(use, plan)}"
    yield f"evidence ends at {counted(plan.evidence, 'client')}: the smallest measured range of the lines below"
    yield ""
    rows = [_row(part, use, plan, size) for part in plan.parts for use in part.uses]
    yield tabled(rows, terminal_width(), as_text=True)
    costs = spec.costs.get(scenario.client, Costs())
    alone, late = costs.subscriber_message_s, costs.together_s
    if alone and late and alone.rates and plan.rate > alone.rates[1]:
        cores = late.value * plan.rate * plan.clients
        at = f"{number(late.rates[0])}/s with " if late.rates else ""
        yield ""
        yield (
            f"if messages may be late and several are sent with one write: {figure(cores)} cores in all instead "
            f"({figure(late.value * 1e6)} µs a message; {late.source}, measured at {at}"
            f"{counted(late.clients, 'client')})"
        )


def _row(part: PlanItem, use: ResourceUse, plan: CapacityPlan, size: int) -> dict[str, str]:
    total, needed = use.total(plan.clients), use.needed(plan.clients)
    interval, unknown = "", "no limit" if use.cost.unlimited else "not known"
    if use.cost.low is not None and use.cost.high is not None:
        low, high = (_amount(value * plan.clients, use.unit) for value in (use.cost.low, use.cost.high))
        interval = f" [{low} – {high}]"
    return {
        "of": part.one,
        "what": use.name,
        f"{count(plan.clients)} take": f"{_amount(total, use.unit)}{interval}" if total is not None else unknown,
        "one has": "not known" if use.has is None else _amount(use.has, use.unit),
        "ends at": "" if use.ends_at is None else count(use.ends_at),
        "needed": "" if needed is None else count(needed),
        "from": use.cost.source + evidence(use, plan, size),
    }


def evidence(use: ResourceUse, plan: CapacityPlan, size: int) -> str:
    """How the measurement behind a cost differs from the workload asked for: clients, rate, load, message size."""
    if use.a_client is None or (use.cost.clients == plan.clients and use.cost.rates is None):
        return ""
    said = [f"; up to {counted(use.cost.clients, 'client')}"]
    if use.cost.rates is not None:
        low, high = use.cost.rates
        at = number(low) if high < 1.05 * low else f"{number(low)} to {number(high)}"
        said.append(f" at {at}/s each")
        if not 0.9 * low <= plan.rate <= 1.1 * high:
            said.append(f" (not at {number(plan.rate)}/s)")
        if use.cost.swing > _STEADY:
            said.append(f", means of a load that changed and was {use.cost.swing:.2g} times as high at its highest")
    if use.cost.sizes is not None and not 0.9 * use.cost.sizes[0] <= size <= 1.1 * use.cost.sizes[1]:
        least, most = (f"{n:.0f}" for n in use.cost.sizes)
        said.append(f", with messages of {least if least == most else f'{least} to {most}'} bytes (not {size})")
    if use.cost.too_wide:
        said.append("; the interval is too wide to be used")
    return "".join(said) + _beyond(use, plan)


def _beyond(use: ResourceUse, plan: CapacityPlan) -> str:
    if not extrapolated(use, plan.clients):
        return ""
    return f" — EXTRAPOLATED to {number(use.beyond(plan.clients))} times the largest measured count"


def _amount(value: float, unit: str) -> str:
    if unit == "bit/s":
        return f"{number(value * 8 / 1e9)} Gbit/s"
    if unit.startswith("bytes"):
        size, prefix = next(
            ((s, p) for s, p in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if value >= s), (1, "")
        )
        return f"{number(value / size)} {unit.replace('bytes', f'{prefix}B')}"
    return f"{figure(value)} {unit}"


def _told(plan: CapacityPlan, scenario: Scenario, host: AgentSize) -> dict[str, Any]:
    first = plan.first
    return {
        "clients": plan.clients,
        "rate": plan.rate,
        "system": scenario.system,
        "implementation": scenario.client,
        "agent": asdict(host),
        "needed": {part.name: part.needed(plan.clients) for part in plan.parts},
        "fits": None if plan.endless else plan.fits,
        "breaks_first": first and {"of": first[0].name, "what": first[1].name, "at_clients_each": first[1].ends_at},
        "evidence_ends_at": plan.evidence,
        "uses": [
            {
                "of": part.name,
                **asdict(use),
                "total": use.total(plan.clients),
                "clients_each": use.ends_at,
                "needed": use.needed(plan.clients),
                "extrapolated": use.a_client is not None and extrapolated(use, plan.clients),
                "too_wide": use.cost.too_wide,
            }
            for part in plan.parts
            for use in part.uses
        ],
    }
