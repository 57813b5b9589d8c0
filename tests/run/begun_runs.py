"""What a run of a command writes down before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.config.cluster import load_cluster
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import load_scenario
from hydra.model import Scenario
from hydra.run.run_metadata import metadata
from hydra.store.database import RunStore
from hydra.store.redaction import Redactor

CLUSTER = load_cluster()


def known_of(scenario: Scenario, first: Mapping[str, object], *words: str) -> dict[str, Any]:
    """The metadata of a run of this command that was begun with these settings."""
    return metadata(
        "run", scenario, CLUSTER, "local", ["hydra", *words], first, Redactor.of_run(ResolvedScenario.of(scenario))
    )


def stored(folder: Path, first: dict[str, object], name: str = "kafka-fixed", *words: str) -> Scenario:
    """The scenario of a run that was begun with these settings."""
    scenario = load_scenario(name, first)
    RunStore.create(folder, known_of(scenario, first, name, *words)).close()
    return scenario
