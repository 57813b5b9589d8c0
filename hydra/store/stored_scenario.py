"""The stored form of a scenario, and the scenario from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.model import Scenario
from hydra.sweep import SweepTable, as_table, of_table


def as_stored(scenario: Scenario) -> dict[str, Any]:
    """The stored form of a scenario; its sweep has the keys of all kinds."""
    told: dict[str, Any] = msgspec.to_builtins(scenario)
    return {**told, "sweep": msgspec.to_builtins(as_table(scenario.sweep))}


def from_stored(stored: Mapping[str, Any]) -> Scenario:
    """A scenario from its stored form; errors as for ``msgspec.convert``."""
    sweep = of_table(msgspec.convert(stored["sweep"], SweepTable))
    return replace(msgspec.convert(stored, Scenario), sweep=sweep)


def stored_scenario(stored: Mapping[str, Any]) -> ResolvedScenario:
    """A scenario and its system from the stored form; errors also as for ``ResolvedScenario.of``."""
    return ResolvedScenario.of(from_stored(stored))
