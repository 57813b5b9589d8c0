"""The published Kafka experiments that Hydra repeats."""

from __future__ import annotations

from typing import Final

from hydra.kafkatest.experiments import compression, dcos, design_goals, linkedin, network, partition_formula
from hydra.system import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    *linkedin.EXPERIMENTS,
    *dcos.EXPERIMENTS,
    *design_goals.EXPERIMENTS,
    *compression.EXPERIMENTS,
    *network.EXPERIMENTS,
    *partition_formula.EXPERIMENTS,
)
"""All experiments, in the order in which ``--list`` shows them."""
