"""Limits what subscribers read ahead, so that a run fits into the memory of its machine. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.resource_needs import ahead_bytes
from hydra.config.shortages import MachineLimits, needs_of_size
from hydra.events.run_events import ReadAheadLimited
from hydra.model import ClusterSpec

_SPARE: Final = 0.1
"""The share of the available memory that is left to what the footprints do not count, such as the page cache."""


def kept_limit(resolved: ResolvedScenario, overrides: Mapping[str, Any]) -> ResolvedScenario:
    """The scenario with the limit of its run, which a resumed run keeps whatever memory is available now.

    Args:
        resolved: the scenario, with the limit or without it.
        overrides: the overrides of the run, with the limit if the run set one.
    """
    ahead = resolved.system.resources.read_ahead(resolved.scenario)
    if ahead is None or ahead.key not in overrides:
        return resolved
    table, _, name = ahead.key.rpartition(".")
    scenario = resolved.scenario
    own = scenario.tables.get(table, resolved.system.settings.tables[table]())
    tables = {**scenario.tables, table: replace(own, **{name: overrides[ahead.key]})}
    return replace(resolved, scenario=replace(scenario, tables=tables))


def ahead_limit(resolved: ResolvedScenario, cluster: ClusterSpec, machine: MachineLimits) -> ReadAheadLimited | None:
    """The limit with which every row fits that can fit; None: none is needed, or the user has set one.

    Args:
        resolved: the scenario.
        cluster: the settings of the cluster file.
        machine: the machine's current limits.
    """
    ahead = resolved.system.resources.read_ahead(resolved.scenario)
    if ahead is None or not ahead.key:
        return None
    room = machine.memory_available_bytes * (1 - _SPARE)
    found, most = ahead.messages, 0
    for publishers, clients in resolved.scenario.sizes:
        taken = ahead_bytes(resolved, publishers, clients)
        needed = needs_of_size(resolved, cluster, (publishers, clients)).memory_bytes
        places = ahead.places * (1 if ahead.shared else clients)
        if not clients:
            continue  # a row without subscribers
        fits = math.floor((room - needed + taken) / (places * ahead.message_bytes)) - ahead.more
        if needed > room and fits >= ahead.least:
            found = min(found, fits)
        most = max(most, taken)
    if found >= ahead.messages:
        return None
    return ReadAheadLimited(ahead.key, ahead.messages, found, most, machine.memory_available_bytes)
