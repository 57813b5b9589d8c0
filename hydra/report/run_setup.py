"""The setup of a run from its scenario, and from what its clients and servers reported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import msgspec

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.errors import HydraError
from hydra.measure.step_result import StepResult
from hydra.model import (
    ClientSetup,
    Figure,
    HostSetup,
    MessageBytes,
    RunSetup,
    Scenario,
    ServerFacts,
    ServerSetup,
    SetupPart,
    merged,
)
from hydra.model.size_ranges import size_ranges
from hydra.store.database import CLIENTS_KEY, SERVERS_KEY, RunStore
from hydra.store.run_folders import DATABASE
from hydra.store.stored_scenario import stored_scenario


@dataclass(frozen=True, slots=True)
class ReportedFacts:
    """What a run knows beyond its scenario, each () as long as it is unknown.

    Attributes:
        clients: the kinds of clients that reported.
        servers: what was found out about the servers.
        hosts: the hosts, without pins.
    """

    clients: tuple[ClientSetup, ...] = ()
    servers: tuple[ServerFacts, ...] = ()
    hosts: tuple[HostSetup, ...] = ()


def setup_of(resolved: ResolvedScenario, facts: ReportedFacts | None = None) -> RunSetup:
    """The setup of a run.

    Args:
        resolved: the scenario, with its system's tables as dataclasses.
        facts: what the run reported; None: nothing yet.
    """
    scenario, spec, facts = resolved.scenario, resolved.system, facts or ReportedFacts()
    pins = {role: pin for role in ("publisher", "subscriber", "server") if (pin := getattr(scenario, role).pin)}
    has_servers, count = spec.servers is not None, None if spec.address(scenario) else spec.servers_of(scenario)
    return RunSetup(
        publishers=tuple(sorted({publishers for publishers, _ in scenario.sizes})),
        subscribers=tuple(sorted({subscribers for _, subscribers in scenario.sizes})),
        message_bytes=tuple(dict.fromkeys(_sizes(scenario))),
        clients=facts.clients or (ClientSetup(None, scenario.client),),
        clients_per_process=(scenario.native.clients_per_process,),
        settings=(*_traffic(scenario), *spec.setup_parts(scenario)),
        servers=tuple(ServerSetup(spec.title, count, each.versions, each.tls) for each in facts.servers)
        or ((ServerSetup(spec.title, count),) if has_servers else ()),
        hosts=tuple(replace(host, pins=pins) for host in facts.hosts),
        step_s=tuple(sorted({scenario.sweep.shortest_s, scenario.sweep.longest_s})),
        step_messages=tuple(sorted({value for value in scenario.values_of("messages") if isinstance(value, int)})),
    )


def _sizes(scenario: Scenario) -> Iterable[MessageBytes]:
    names = ("message_sizes", "message_size", "message_size_min")
    for ranges, size, least in product(*map(scenario.values_of, names)):
        if ranges:
            found = size_ranges(str(ranges))
            yield MessageBytes(min(low for low, _, _ in found), max(high for _, high, _ in found))
        elif isinstance(size, int):
            yield MessageBytes(least if isinstance(least, int) else size, size)


_TRAFFIC: Mapping[str, tuple[Figure, str]] = {
    "payload": ("zeros", "payload {}"),
    "topics": (1, "{} topics"),
    "keys": (0, "{} keys"),
}
"""The settings of traffic that are named unless they have their usual value in all rows, with their texts."""


def _traffic(scenario: Scenario) -> Iterable[SetupPart]:
    for name, (usual, form) in _TRAFFIC.items():
        if (values := scenario.values_of(name)) != (usual,):
            yield SetupPart(name, values, form)


def stored_setup(store: RunStore, results: Sequence[StepResult]) -> RunSetup:
    """The setup of a stored run.

    Args:
        store: the store of the run.
        results: the steps of the run.

    Raises:
        ConfigError: its system is not installed.
        RunDirectoryError: the run cannot be read.
    """
    metadata = store.metadata()
    measured = next((result.epoch for result in reversed(results) if result.status == "ok"), None)
    with store.reading():
        facts = ReportedFacts(
            msgspec.convert(metadata.get(CLIENTS_KEY, []), tuple[ClientSetup, ...]),
            msgspec.convert(metadata.get(SERVERS_KEY, []), tuple[ServerFacts, ...]),
            () if measured is None else _hosts(store, measured),
        )
        return setup_of(stored_scenario(metadata["scenario"]), facts)


def _hosts(store: RunStore, epoch: int) -> tuple[HostSetup, ...]:
    """The hosts of a step; () if they are unknown."""
    names = tuple(sorted(set(store.host_of(epoch).values())))
    if not names:
        return ()
    clocks, machines = store.clocks(epoch), store.machines()
    local = bool(clocks) and all(clock.same_host for clock in clocks.values())
    cpus = [machines[name].allowed or machines[name].cpus if name in machines else None for name in names]
    return (HostSetup(local, names, sum(len(each or ()) for each in cpus) if all(cpus) else None),)


def setup_of_folders(directories: Iterable[Path]) -> RunSetup:
    """The setup of all of these runs together, without those that are not there or cannot be read."""
    found = []
    for directory in directories:
        if (directory / DATABASE).is_file():
            with contextlib.suppress(HydraError), RunStore.open(directory) as store:
                found.append(stored_setup(store, store.results()))
    return merged(found)
