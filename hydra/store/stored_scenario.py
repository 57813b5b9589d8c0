"""The stored form of a scenario and of a step's plan, and both from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from hydra.config import plugins
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.errors import ConfigError
from hydra.measure.column import Column, SystemColumns
from hydra.model import NoOptions, NoSystemSettings, Scenario, StepPlan, SystemPart, SystemSettings
from hydra.sweep import as_table, kind_of_table
from hydra.sweep import kind as sweep_kind
from hydra.system import QueueCapacity, SystemSpec


def as_stored(scenario: Scenario) -> dict[str, Any]:
    """The stored form of a scenario; its sweep has the keys of all kinds."""
    stored: dict[str, Any] = msgspec.to_builtins(scenario)
    return {**stored, "sweep": as_table(stored["sweep"])}


def stored_scenario(stored: Mapping[str, Any]) -> ResolvedScenario:
    """A scenario and its system from the stored form; errors as for ``msgspec.convert`` and ``plugins.system``."""
    spec, sweep = plugins.system(stored["system"]), stored["sweep"]
    kind = kind_of_table([name for name, value in sweep.items() if value])
    tables: dict[str, Any] = {
        name: msgspec.convert(table, spec.settings.tables[name])
        for name, table in stored["tables"].items()
        if name in spec.settings.tables
    }
    scenario = msgspec.convert(stored, Scenario, dec_hook=_Parts(spec))
    return ResolvedScenario(replace(scenario, sweep=msgspec.convert(sweep, kind.spec), tables=tables), spec)


class _Parts:
    """Makes the parts of a system in tables that systems share; of an unknown system they are empty."""

    def __init__(self, spec: SystemSpec | None) -> None:
        self._settings = spec.settings.step if spec else NoSystemSettings
        self._options = spec.settings.native if spec else NoOptions

    def __call__(self, kind: type, value: object) -> SystemPart:
        """The part for a field of this type, from its JSON object."""
        return msgspec.convert(value, self._settings if kind is SystemSettings else self._options)


def plan_decoder(system: str) -> msgspec.json.Decoder[StepPlan]:
    """Reads the plans of the steps of a system, which need not be installed."""
    try:
        spec = plugins.systems().get(system)
    except ConfigError:  # a damaged package
        spec = None
    return msgspec.json.Decoder(StepPlan, dec_hook=_Parts(spec))


def added_by(scenario: Scenario) -> SystemColumns:
    """The columns that the scenario's system adds."""
    return ResolvedScenario.of(scenario).added


def columns_of(scenario: Scenario) -> dict[str, Column]:
    """See :func:`hydra.sweep.kind.columns_of`."""
    return ResolvedScenario.of(scenario).columns


def published_columns(scenario: Scenario) -> tuple[Column, ...]:
    """See :func:`hydra.sweep.kind.published_columns`."""
    return sweep_kind.published_columns(scenario, added_by(scenario))


def in_order(scenario: Scenario, rows: Sequence[Mapping[str, object]]) -> list[Column]:
    """See :func:`hydra.sweep.kind.in_order`."""
    return sweep_kind.in_order(scenario, added_by(scenario), rows)


def held_by(scenario: Scenario) -> QueueCapacity | None:
    """How many messages can wait for a slow subscriber before messages are lost; None: unknown."""
    return plugins.system(scenario.system).delivery(scenario, scenario.settings).capacity


def of_silent_groups(scenario: Scenario) -> str:
    """What a user checks if no member of a group receives anything; "": there is nothing special."""
    return plugins.system(scenario.system).delivery(scenario, scenario.settings).silent_group


def is_native(scenario: Scenario) -> bool:
    """Whether the clients are Hydra's native program."""
    found = plugins.system(scenario.system).identity.implementations.get(scenario.client)
    return found is not None and found.program == "native"
