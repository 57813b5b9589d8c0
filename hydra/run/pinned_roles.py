"""The CPUs of the roles of a run: lists in place of ``apart``, and whether the hosts of a cluster keep them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.engine.pinning import RolePin, cpus_of_roles, refusal_of
from hydra.errors import UsageError
from hydra.model import APART, GroupRole, MachineRecord, RoleSpec, Scenario, ServerSpec, format_cpus


def is_apart(resolved: ResolvedScenario) -> bool:
    """Whether a role of a scenario shares no core with the others."""
    return any(role.pin == APART for role in roles_of(resolved).values())


def roles_of(resolved: ResolvedScenario) -> dict[GroupRole, RolePin]:
    """The roles whose processes a run starts, with the pin and the number of processes of each."""
    scenario = resolved.scenario
    clients = max(count for _, count in scenario.sizes)
    packed = max(scenario.native.clients_per_process, 1)
    roles: dict[GroupRole, RolePin] = {"publisher": RolePin(scenario.publisher.pin, scenario.publishers)}
    if resolved.servers:
        roles["server"] = RolePin(scenario.server.pin, resolved.servers)
    if clients:
        roles["subscriber"] = RolePin(scenario.subscriber.pin, -(-clients // packed))
    return roles


def pinned_scenario(
    resolved: ResolvedScenario, machine: MachineRecord
) -> tuple[ResolvedScenario, Mapping[GroupRole, tuple[int, ...]]]:
    """The scenario with a list of CPUs as the pin of each role, and these CPUs; for a run on one machine.

    Raises:
        UsageError: the machine does not have these CPUs, or not enough cores.
    """
    roles = roles_of(resolved)
    if not any(role_pin.pin for role_pin in roles.values()):
        return resolved, {}
    cpus = cpus_of_roles(roles, machine)
    return resolved.adapted(_with_pins(resolved.scenario, cpus)), cpus


def _with_pins(scenario: Scenario, cpus: Mapping[GroupRole, tuple[int, ...]]) -> Scenario:
    pins = {role: format_cpus(its) for role, its in cpus.items()}
    return replace(
        scenario,
        publisher=_with_pin(scenario.publisher, pins.get("publisher", "")),
        subscriber=_with_pin(scenario.subscriber, pins.get("subscriber", "")),
        server=cast("ServerSpec", _with_pin(scenario.server, pins.get("server", ""))),
    )


def _with_pin(spec: RoleSpec, pin: str) -> RoleSpec:
    return replace(spec, pin=pin)


def unkept_pin(
    roles: Mapping[GroupRole, RolePin], hosts: Iterable[tuple[str, MachineRecord, frozenset[str]]]
) -> UsageError | None:
    """Why a host of a cluster does not keep the pins of its processes; None: no host is known not to.

    Args:
        roles: the roles of the run.
        hosts: the name of each host, its record as one of the run's processes there read it, and the roles there.
    """
    for name, record, on_host in hosts:
        pins = {role: processes.pin for role, processes in roles.items() if role in on_host}
        # A host of one role needs no CPUs of its own: the role shares no core with the others.
        if record.allowed is None or record.cpus is None or not all(pins.values()) or list(pins.values()) == [APART]:
            continue
        refusals = [refusal_of(role, pin, record.allowed, record.cpus, name) for role, pin in pins.items()]
        # The record does not show which of the host's processes read it.
        if refusals and all(refusals):
            return refusals[0]
    return None
