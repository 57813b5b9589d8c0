"""Fetches the directory of a run in the cluster."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from hydra.cluster.kubernetes import streams
from hydra.cluster.kubernetes.access import ApiError
from hydra.cluster.kubernetes.in_cluster.objects import KEEPING, packing
from hydra.cluster.kubernetes.in_cluster.place import Place
from hydra.cluster.kubernetes.removal import AGAIN
from hydra.errors import ClusterError, RunDirectoryError
from hydra.results.folders import DATABASE

_STATE: Final = ".hydra/state"
_TRIES_S: Final = 60.0
"""How long it is tried again when the connection breaks."""
_GONE: Final = "container not found"
"""What a node says of a container that has ended."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What has come.

    Attributes:
        measured: whether there is a run's database; otherwise nothing has come.
        ended: whether the command had ended by then.
        code: its exit code; None: it had not ended, or was killed.
    """

    measured: bool
    ended: bool
    code: int | None


def fetch(place: Place, pod: str, out: Path) -> Fetched:
    """Fetches a run's directory as of now; ``out`` is whole, or not there.

    Raises:
        RunDirectoryError: ``out`` is there already.
        ClusterError: it cannot be had, or came incomplete.
    """
    refuse_existing(out)
    deadline = time.monotonic() + _TRIES_S
    while True:
        try:
            return _fetched(place, pod, out)
        except ApiError as e:
            if e.status not in AGAIN or _GONE in e.message or time.monotonic() > deadline:
                raise place.refused(e, "exec in pods") from None
        except (tarfile.TarError, EOFError) as e:
            if time.monotonic() > deadline:
                raise ClusterError(f"the directory of {place.run} came incomplete: {e}", "try it again") from None
        time.sleep(1.0)


def _fetched(place: Place, pod: str, out: Path) -> Fetched:
    draft = out.parent / f".{out.name}.part-{os.getpid()}"
    try:
        fetched = _received(streams.execute(place.api, place.namespace, pod, KEEPING, packing(place.run)), draft, place)
        if fetched.measured:
            (draft / place.run).rename(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return fetched


def refuse_existing(out: Path) -> None:
    """Refuses a directory that holds something.

    Raises:
        RunDirectoryError: it does.
    """
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise RunDirectoryError(f"{out} exists", "choose another folder with --out")


def _received(pieces: Iterator[bytes], draft: Path, place: Place) -> Fetched:
    draft.mkdir(parents=True)
    state, measured = {"ended": False, "exit": None}, False
    # It is read as it comes: nobody knows how much it is.
    with tarfile.open(fileobj=cast(IO[bytes], _Pieces(pieces)), mode="r|gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is None:
                continue
            if member.name == _STATE:
                state = json.loads(content.read())
                continue
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts or path.parts[0] != place.run:
                raise ClusterError(f"the cluster sent a file of another place: {member.name}")
            target = draft / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(content, file)
            measured = measured or path.name == DATABASE
    return Fetched(measured, bool(state["ended"]), cast("int | None", state["exit"]))


class _Pieces:
    """Pieces of bytes as a file that is read from."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = piece
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken
