"""Runs a whole command in the cluster, and fetches what it has measured."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import click

from hydra.config.cluster import load_cluster
from hydra.config.file_locations import conf_dir
from hydra.engine.interface import Relocation
from hydra.errors import EXIT_INTERRUPTED, Terminated, UsageError
from hydra.kubernetes.in_cluster.cluster_file import needed
from hydra.kubernetes.in_cluster.fetch import followed_and_fetched, left_there
from hydra.kubernetes.in_cluster.job_arguments import MASTER, Words, config_among, rewritten, with_files
from hydra.kubernetes.in_cluster.log_follower import await_begin
from hydra.kubernetes.in_cluster.objects import COMMAND_ID, Json, Order, job, secret, secret_data
from hydra.kubernetes.in_cluster.run_job import NotMadeError, Place
from hydra.kubernetes.in_cluster.transfer import refuse_existing
from hydra.kubernetes.owner_job import owner
from hydra.kubernetes.pod_scripts.owner_pod import digest
from hydra.kubernetes.pods import Family, own_image
from hydra.kubernetes.program_delivery import sources


def relocate(asked: Relocation) -> int | None:
    """The exit code of the command, which has run in the cluster; None: it is to run here.

    Raises:
        UsageError: it cannot run there.
        ClusterError: it does not run there.
    """
    if asked.master == MASTER:
        return None  # this is the Pod
    out = asked.out
    words, files = _shipped(asked)
    refuse_existing(out)
    place = Place.of(asked.master, asked.settings, out.resolve().name)
    # What is said of a cluster that cannot be asked at all needs no tidying.
    place.pod()
    its_job, its_secret = _objects(place, asked, words, files)
    made = whole = False
    try:
        job_there = place.create("jobs", its_job)
        made = True
        place.create("secrets", its_secret(job_there))
        whole = True
        tell = _silent if "--quiet" in asked.arguments else _say
        text = f"handed to the cluster as Job {place.namespace}/{place.name}; should this command end early"
        tell(f"{text}: {place.fetching}")
        pod = await_begin(place, tell)
    except BaseException as e:
        if whole and isinstance(e, Terminated):
            return left_there(place)
        if made or not isinstance(e, NotMadeError):
            place.tidy()
        if isinstance(e, KeyboardInterrupt):
            return EXIT_INTERRUPTED
        raise
    return followed_and_fetched(place, pod, out, ends=True)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _silent(text: str) -> None:
    """Of a quiet command, only warnings are shown."""


def _shipped(asked: Relocation) -> tuple[Words, dict[str, bytes]]:
    """The words in the Pod, and the files that go there by their path in it.

    Raises:
        UsageError: a file cannot be read or shipped, or the cluster file cannot be used.
    """
    config = config_among(asked.arguments) or str(conf_dir() / "hydra.toml")
    load_cluster(Path(config))  # what is wrong with it is said here
    words = rewritten(asked.arguments, asked.out.resolve().name, config, os.path.isfile)
    files: dict[str, bytes] = {}
    for path, copy in words.files.items():
        content = _read(path)
        if path == config:
            content = needed(content.decode()).encode()
        elif path.endswith(".toml"):
            text, more = with_files(content.decode(), os.path.isfile, len(words.files) + len(files))
            content = text.encode()
            files.update({its_copy: _read(its) for its, its_copy in more.items()})
        files[copy] = content
    return words, files


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as e:
        raise UsageError(
            f"{path} cannot be shipped to the cluster: {e.strerror}", "name a file that can be read"
        ) from e


def _objects(
    place: Place, asked: Relocation, words: Words, files: dict[str, bytes]
) -> tuple[Json, Callable[[Json], Json]]:
    """The Job, and the Secret that goes with it once the Job is there.

    Raises:
        UsageError: the files are too large.
    """
    installed = version("hydra-scale")
    image = own_image(asked.settings, installed)
    family = Family(place.run, place.namespace, {}, asked.settings, image, archive=False)
    exports = any(word.partition("=")[0] == "--otlp" for word in words.arguments)
    environment = {name: value for name, value in os.environ.items() if exports and name.startswith("OTEL_EXPORTER_")}
    typed = tuple(asked.arguments)
    order = Order(words.arguments, typed, installed, digest(str(sources())), image, terminal_of(os.environ))
    data = secret_data(order, files, environment)
    its_job = job(family, list(files), list(environment))
    # Of one that is there already it tells whether it is this one.
    its_job["metadata"]["annotations"][COMMAND_ID] = uuid.uuid4().hex
    return its_job, lambda there: secret(replace(family, owner=owner(there)), data)


def terminal_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that say what standard output's terminal is like; none where it is no terminal."""
    if not sys.stdout.isatty():
        return {}
    told = {name: environment[name] for name in ("TERM", "NO_COLOR") if name in environment}
    return {**told, "COLUMNS": str(shutil.get_terminal_size().columns)}
