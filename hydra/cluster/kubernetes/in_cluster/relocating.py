"""Runs a whole command in the cluster, and brings home what it has measured."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import click

from hydra.cluster.engine import Relocation
from hydra.cluster.kubernetes.in_cluster.fetching import refuse_existing
from hydra.cluster.kubernetes.in_cluster.following import await_begin
from hydra.cluster.kubernetes.in_cluster.homecoming import brought_home
from hydra.cluster.kubernetes.in_cluster.objects import job, secret, secret_data
from hydra.cluster.kubernetes.in_cluster.place import Place
from hydra.cluster.kubernetes.in_cluster.words import MASTER, Words, config_among, rewritten, with_files
from hydra.cluster.kubernetes.keeper import owner
from hydra.cluster.kubernetes.pods import Family, own_image
from hydra.config.places import conf_dir
from hydra.errors import EXIT_INTERRUPTED, HydraError, UsageError


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
    _make(place, asked, words, files)
    if "--quiet" not in asked.arguments:
        text = f"handed to the cluster as Job {place.namespace}/{place.name}; should this command end early"
        click.echo(f"{text}: {place.fetching}", err=True)
    try:
        pod = await_begin(place)
    except KeyboardInterrupt:
        place.tidy()
        return EXIT_INTERRUPTED
    except HydraError:
        place.tidy()
        raise
    return brought_home(place, pod, out)


def _shipped(asked: Relocation) -> tuple[Words, dict[str, bytes]]:
    """The words in the Pod, and the files that go there by their path in it.

    Raises:
        UsageError: a file cannot be read or shipped.
    """
    config = config_among(asked.arguments) or str(conf_dir() / "hydra.toml")
    words = rewritten(asked.arguments, asked.out.resolve().name, config, os.path.isfile)
    files: dict[str, bytes] = {}
    for path, copy in words.files.items():
        content = _read(path)
        if path != config and path.endswith(".toml"):
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


def _make(place: Place, asked: Relocation, words: Words, files: dict[str, bytes]) -> None:
    """Creates the Job, and the Secret that goes with it; both or none.

    Raises:
        UsageError: the files are too large.
        ClusterError: the cluster refuses.
    """
    installed = version("hydra-scale")
    image = own_image(asked.settings, installed)
    family = Family(place.run, place.namespace, {}, asked.settings, image, archive=False)
    # Of --otlp.
    surroundings = {name: value for name, value in os.environ.items() if name.startswith("OTEL_EXPORTER_")}
    data = secret_data(words.arguments, installed, image, files, surroundings)
    made = place.create("jobs", job(family, list(files), list(surroundings)))
    try:
        place.create("secrets", secret(replace(family, owner=owner(made)), data))
    except BaseException:
        place.tidy()
        raise
