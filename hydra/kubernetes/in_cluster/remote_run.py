"""Runs a whole command in the cluster, and fetches its run directory."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Final
from urllib.parse import urlsplit

import click

from hydra.client.linux_process import opened
from hydra.engine.specification import CARRIED_OUT, Relocation
from hydra.errors import EXIT_INTERRUPTED, Terminated, UsageError
from hydra.kubernetes.api_client import IN_CLUSTER
from hydra.kubernetes.in_cluster.fetch import followed_and_fetched, left_in_cluster
from hydra.kubernetes.in_cluster.job_objects import (
    COMMAND_FILE,
    COMMAND_ID,
    FILES,
    RUNS,
    JobRequest,
    Json,
    job,
    secret,
    secret_data,
)
from hydra.kubernetes.in_cluster.log_follower import await_begin
from hydra.kubernetes.in_cluster.run_job import ObjectNotMadeError, RunJob
from hydra.kubernetes.in_cluster.transfer import refuse_existing
from hydra.kubernetes.keeper_job import owner
from hydra.kubernetes.pod_scripts.keeper_pod import digest
from hydra.kubernetes.pods import RunObjects, own_image
from hydra.kubernetes.program_delivery import sources
from hydra.options.flag_types import url_host

MASTER: Final = f"k8s://{IN_CLUSTER}"
"""The ``--master`` of a command that runs in a Pod of the cluster."""


def relocate(relocation: Relocation) -> int | None:
    """Runs the command in the cluster and returns its exit code; None if this process is to run it.

    Raises:
        UsageError: the command cannot run in the cluster.
        ClusterError: the cluster does not run it.
    """
    if relocation.master == MASTER:
        return None  # this is the Pod
    out = relocation.out
    _refuse_here(relocation)
    refuse_existing(out)
    order, copies = relocation.shipment(MASTER, FILES)
    files = {COMMAND_FILE: order, **{copy: _read(path) for path, copy in copies.items()}}
    place = RunJob.of(relocation.master, relocation.settings, out.resolve().name)
    # If the cluster cannot be reached at all, this call raises the error before any object exists.
    place.pod()
    its_job, its_secret = _objects(place, relocation, files)
    made = whole = False
    try:
        made_job = place.create("jobs", its_job)
        made = True
        place.create("secrets", its_secret(made_job))
        whole = True
        notify = _silent if relocation.flags["quiet"] else _notify
        text = f"handed to the cluster as Job {place.namespace}/{place.name}; should this command end early"
        notify(f"{text}: {place.fetching}")
        pod = await_begin(place, notify)
    except BaseException as e:
        if whole and isinstance(e, Terminated):
            return left_in_cluster(place)
        if made or not isinstance(e, ObjectNotMadeError):
            place.delete()
        if isinstance(e, KeyboardInterrupt):
            return EXIT_INTERRUPTED
        raise
    return followed_and_fetched(place, pod, out, ends=True)


def _notify(text: str) -> None:
    click.echo(text, err=True)


def _silent(text: str) -> None:
    """Drops a line: a quiet command shows only warnings."""


def _refuse_here(relocation: Relocation) -> None:
    """Rejects what only this machine can do, and loopback addresses, which in a Pod mean the Pod itself."""
    if relocation.resumed:
        raise UsageError("--resume continues a run of this machine", "leave out --in-cluster")
    if listening := relocation.flags["prometheus"]:
        host, port = listening
        scrape = f"write --prometheus 0.0.0.0:{port}, and scrape the Pod hydra-…-controller"
        _refuse_loopback(f"--prometheus {url_host(host, port)}", host, scrape)
    if url := relocation.flags["otlp"]:
        _refuse_loopback(f"--otlp {url}", urlsplit(url).hostname or "", "name the receiver as Pods reach it")


def _refuse_loopback(flag: str, host: str, remedy: str) -> None:
    if host in ("localhost", "::1") or host.startswith("127."):
        raise UsageError(f"{flag} is the Pod itself where the command runs in the cluster", remedy)


def _read(path: str) -> bytes:
    try:
        with opened(path) as file:
            return file.read()
    except OSError as e:
        raise UsageError(
            f"{path} cannot be shipped to the cluster: {e.strerror}", "name a file that can be read"
        ) from e


def _objects(place: RunJob, relocation: Relocation, files: Mapping[str, bytes]) -> tuple[Json, Callable[[Json], Json]]:
    """The Job, and a function that makes the Secret from the created Job, which owns it.

    Raises:
        UsageError: the files are too large.
    """
    installed = version("hydra-scale")
    image = own_image(relocation.settings, installed)
    family = RunObjects(place.run, place.namespace, {}, relocation.settings, image, archive=False)
    exports = relocation.flags["otlp"] is not None
    environment = {name: value for name, value in os.environ.items() if exports and name.startswith("OTEL_EXPORTER_")}
    words = ("python3", "-P", "-m", CARRIED_OUT, COMMAND_FILE, f"{RUNS}/{place.run}")
    typed = tuple(relocation.arguments)
    order = JobRequest(words, typed, installed, digest(str(sources())), image, terminal_of(os.environ))
    data = secret_data(order, files, environment)
    its_job = job(family, list(files), list(environment))
    # If a Job of this name exists already, the id shows whether it is this one.
    its_job["metadata"]["annotations"][COMMAND_ID] = uuid.uuid4().hex
    return its_job, lambda created: secret(replace(family, owner=owner(created)), data)


def terminal_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of standard output's terminal; empty if it is no terminal."""
    if not sys.stdout.isatty():
        return {}
    shown = {name: environment[name] for name in ("TERM", "NO_COLOR") if name in environment}
    return {**shown, "COLUMNS": str(shutil.get_terminal_size().columns)}
