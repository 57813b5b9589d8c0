"""Begins a run on a Kubernetes cluster, or says in one line why it cannot."""

from __future__ import annotations

from contextlib import AbstractContextManager

from hydra.cluster.engine import Engine, Opening
from hydra.cluster.kubernetes.settings import KubernetesSettings
from hydra.errors import ClusterError
from hydra.model import Agent


def opened(opening: Opening) -> AbstractContextManager[Engine]:
    """The engine for a run."""
    raise ClusterError(f"{opening.master}: not built yet", "come back later")


def agents(master: str, settings: KubernetesSettings) -> list[Agent]:
    """The nodes as agents."""
    raise ClusterError(f"{master}: not built yet", f"come back later to {settings.namespace}")
