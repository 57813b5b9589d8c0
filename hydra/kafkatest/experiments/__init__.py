"""The published Kafka experiments that Hydra repeats."""

from __future__ import annotations

from typing import Final

from hydra.kafkatest.experiments import dcos, linkedin
from hydra.system import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = (*linkedin.EXPERIMENTS, *dcos.EXPERIMENTS)
"""In the order in which they are listed."""
