"""Transfers a run directory from its Pod to this machine."""

from __future__ import annotations

import contextlib
import json
import shutil
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from hydra.errors import ClusterError, RunDirectoryError
from hydra.kubernetes import api_streams
from hydra.kubernetes.api_client import ApiError
from hydra.kubernetes.in_cluster.job_objects import KEEPING, packing, releasing
from hydra.kubernetes.in_cluster.job_state import is_kept
from hydra.kubernetes.in_cluster.run_job import RunJob
from hydra.kubernetes.run_removal import AGAIN
from hydra.store.run_folders import DATABASE, check_folder, locked

_STATE: Final = ".hydra/state"
_TRIES_S: Final = 60.0
"""How long Hydra repeats the transfer when the connection breaks."""
_NO_CONTAINER: Final = "container not found"
"""A node's message about a container that has ended, or has not begun."""
_SILENT_S: Final = 600.0
"""How long no data may arrive: the Pod copies a database, which may be large, before it sends the first byte."""


@dataclass(frozen=True, slots=True)
class FetchedFiles:
    """The result of a transfer.

    Attributes:
        measured: whether there is a run's database; otherwise no file was transferred.
        ended: whether the command had ended by then.
        code: the command's exit code; None if it had not ended, or was killed.
    """

    measured: bool
    ended: bool
    code: int | None


def transfer(place: RunJob, pod: str, out: Path) -> FetchedFiles:
    """Fetches a run's directory as of now; ``out`` is complete, or does not exist.

    Raises:
        RunDirectoryError: ``out`` exists already.
        ClusterError: the directory cannot be fetched, or arrived incomplete.
    """
    refuse_existing(out)
    deadline = time.monotonic() + _TRIES_S
    while True:
        try:
            return _transferred(place, pod, out)
        except ApiError as e:
            if (
                e.status not in AGAIN
                or (_NO_CONTAINER in e.message and _has_ended(place))
                or time.monotonic() > deadline
            ):
                raise place.refused(e, "exec in pods") from None
        except (tarfile.TarError, EOFError) as e:
            if time.monotonic() > deadline:
                raise ClusterError(f"the directory of {place.run} arrived incomplete: {e}", "try it again") from None
        time.sleep(1.0)


def release(place: RunJob, pod: str) -> None:
    """Notifies a Pod that is being deleted that all has been fetched: another deletion would not shorten its grace."""
    with contextlib.suppress(ApiError):  # the Pod then ends by itself, somewhat later
        for _ in api_streams.execute(place.api, place.namespace, pod, KEEPING, releasing()):
            pass


def _transferred(place: RunJob, pod: str, out: Path) -> FetchedFiles:
    whole = out.resolve()
    draft = whole.with_name(f".{whole.name}.part")
    draft.mkdir(parents=True, exist_ok=True)
    with locked(draft):
        try:
            shutil.rmtree(draft / place.run, ignore_errors=True)  # of a command that was killed
            sent = api_streams.execute(place.api, place.namespace, pod, KEEPING, packing(place.run), _SILENT_S)
            fetched = _received(sent, draft, place)
            if fetched.measured:
                (draft / place.run).rename(whole)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return fetched


def _has_ended(place: RunJob) -> bool:
    """Whether the Pod does not keep the directory any more."""
    try:
        pod = place.pod()
    except ClusterError:
        return False
    return pod is None or not is_kept(pod)


def refuse_existing(out: Path) -> None:
    """Checks that a run directory can be made.

    Raises:
        RunDirectoryError: it cannot be made, or exists and is not empty.
    """
    check_folder(out)
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise RunDirectoryError(f"{out} exists", "choose another folder with --out")


def _received(pieces: Iterator[bytes], draft: Path, place: RunJob) -> FetchedFiles:
    state, measured = {"ended": False, "exit": None}, False
    # The archive is read as it arrives, as its size is not known.
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
    return FetchedFiles(measured, bool(state["ended"]), cast("int | None", state["exit"]))


class _Pieces:
    """A file to read from, made of pieces of bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; none at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = piece
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken
