"""Which instance is whose: locks on files, which end with the process that holds them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Final

from tests.kubernetes.nodes import PUBLISHED, NodeSpec
from tests.kubernetes.places import INSTANCES, MACHINE, locked
from tests.kubernetes.processes import RigError
from tests.kubernetes.rig import Rig

_TAKING: Final = MACHINE / "taking"


@contextmanager
def shared() -> Iterator[Rig]:
    """The rig of this session of pytest: the first worker starts it, the last one ends it.

    HYDRA_RIG=N is instance N instead: it is started if it is not up, and stays up.
    """
    if named := os.environ.get("HYDRA_RIG"):
        rig = Rig(int(named))
        with _starting(rig):
            if rig.is_up:
                rig.bring()
            else:
                rig.up()
        yield rig
        return
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"process {os.getpid()}"
    with locked(_TAKING):
        rig, users = _of_session(session) or _free(session)
        fcntl.flock(users, fcntl.LOCK_SH)
    try:
        with _starting(rig):
            if not rig.is_up:
                rig.up()
        yield rig
    finally:
        with locked(_TAKING), users:
            if _is_last(users):
                rig.down()
                users.truncate(0)


@contextmanager
def by_hand(number: int) -> Iterator[None]:
    """Keeps tests off an instance while it is started or ended by hand; they leave one that is up alone.

    Raises:
        RigError: tests use it.
    """
    with locked(_TAKING):
        users = _users(number).open("a+")
        if not _is_last(users):
            users.close()
            raise RigError(f"tests use instance {number}; take another: --instance")
        users.truncate(0)
    with users:
        yield


@contextmanager
def reserved(specs: Sequence[NodeSpec] = PUBLISHED) -> Iterator[Rig]:
    """An instance that no other process uses, with these nodes; it is not up."""
    with locked(_TAKING):
        free, users = _free("one test")
    with users:
        rig = Rig(free.place.number, specs)
        try:
            yield rig
        finally:
            rig.down()
            users.truncate(0)


@contextmanager
def own(specs: Sequence[NodeSpec] = PUBLISHED) -> Iterator[Rig]:
    """A rig that no other process uses, with these nodes."""
    with reserved(specs) as rig:
        rig.up()
        yield rig


def _starting(rig: Rig) -> AbstractContextManager[None]:
    return locked(MACHINE / f"{rig.place.number}.starting")


def _of_session(session: str) -> tuple[Rig, IO[str]] | None:
    for number in INSTANCES:
        path = _users(number)
        if path.exists() and path.read_text() == session:
            file = path.open("r+")
            if not _is_last(file):
                return Rig(number), file
            file.close()  # that session is over
    return None


def _free(session: str) -> tuple[Rig, IO[str]]:
    """An instance that no process uses, locked; what a session that was killed has left of it is removed."""
    for number in INSTANCES:
        file = _users(number).open("a+")
        # One that was started by hand has nothing in its file.
        if _is_last(file) and (_users(number).read_text() or not Rig(number).is_up):
            file.truncate(0)
            file.write(session)
            file.flush()
            Rig(number).down()
            return Rig(number), file
        file.close()
    raise RigError(f"all {len(INSTANCES)} instances of the rig are in use")


def _is_last(users: IO[str]) -> bool:
    """Whether no other process uses it; then this process has its lock."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _users(number: int) -> Path:
    return MACHINE / f"{number}"
