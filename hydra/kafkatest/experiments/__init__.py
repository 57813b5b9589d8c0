"""The published Kafka experiments that Hydra repeats."""

from __future__ import annotations

from typing import Final

from hydra.kafkatest.experiments import compression, dcos, goals, linkedin, network, plan
from hydra.system import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    *linkedin.EXPERIMENTS,
    *dcos.EXPERIMENTS,
    *goals.EXPERIMENTS,
    *compression.EXPERIMENTS,
    *network.EXPERIMENTS,
    *plan.EXPERIMENTS,
)
"""In the order in which they are listed."""
