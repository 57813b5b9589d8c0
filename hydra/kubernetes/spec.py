"""The specification of the Kubernetes engine, by which generic code uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

import click

from hydra.engine.interface import Engine
from hydra.engine.specification import (
    ClusterChecks,
    EngineFlags,
    EngineSettings,
    EngineSpec,
    Leftovers,
    Opening,
    Relocation,
)
from hydra.kubernetes.settings import KubernetesSettings
from hydra.model import Agent
from hydra.options.flag_types import WORD
from hydra.options.shared_flags import agents_flags


def _opened(opening: Opening) -> AbstractContextManager[Engine]:
    """Creates the owner of the run's Pods, and proves that Pods reach this machine."""
    from hydra.kubernetes.run_start import opened

    return opened(opening)


def _agents(master: str, _: Sequence[Agent], settings: KubernetesSettings) -> list[Agent]:
    from hydra.kubernetes.node_listing import agents

    return agents(master, settings)


def _relocate(relocation: Relocation) -> int | None:
    if not relocation.settings.in_cluster:
        return None

    from hydra.kubernetes.in_cluster.remote_run import relocate

    return relocate(relocation)


def _leftovers(master: str, settings: KubernetesSettings) -> list[dict[str, object]]:
    from hydra.kubernetes.run_removal import leftovers

    return leftovers(master, settings)


def _end_run(master: str, settings: KubernetesSettings, run: str) -> list[str]:
    from hydra.kubernetes.run_removal import end_run

    return end_run(master, settings, run)


def _check(master: str, settings: KubernetesSettings) -> Iterator[str]:
    from hydra.kubernetes.preflight import check

    return check(master, settings)


SPEC: Final = EngineSpec(
    name="kubernetes",
    masters="kubernetes, or k8s://CONTEXT of your kubeconfig",
    handles=lambda master: master == "k8s" or master.startswith("k8s:"),
    is_local=False,
    open=_opened,
    agents=_agents,
    settings=EngineSettings(KubernetesSettings),
    leftovers=Leftovers(_leftovers, _end_run),
    checks=ClusterChecks(_check),
    relocate=_relocate,
    flags=EngineFlags(
        cluster=(
            click.Option(["--namespace"], type=WORD, help="Kubernetes namespace in which the run's Pods are created."),
        ),
        groups=(
            *agents_flags,
            click.Option(
                ["--image", "python_image"],
                type=WORD,
                metavar="IMAGE",
                help="Image with Python for the Pods, in place of Hydra's own image.",
            ),
        ),
        run=(
            click.Option(
                ["--in-cluster"], is_flag=True, default=None, help="Run the whole command in the Kubernetes cluster."
            ),
        ),
    ),
)
