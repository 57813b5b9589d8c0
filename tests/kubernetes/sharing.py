"""Which instance is whose: locks on files, which end with the process that holds them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from tests.kubernetes.places import INSTANCES
from tests.kubernetes.processes import RigError
from tests.kubernetes.rig import Rig

_LOCKS: Final = Path("/run/lock/hydra-rig")


@contextmanager
def shared() -> Iterator[Rig]:
    """The rig of this session of pytest: the first worker starts it, the last one ends it.

    HYDRA_RIG=N is instance N instead: it is started if it is not up, and stays up.
    """
    if named := os.environ.get("HYDRA_RIG"):
        rig = Rig(int(named))
        with _lock("taking"):
            if not rig.is_up:
                rig.up()
        yield rig
        return
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"process {os.getpid()}"
    with _lock("taking"):
        rig, users = _of_session(session) or _free(session)
        fcntl.flock(users, fcntl.LOCK_SH)
        if not rig.is_up:
            rig.up()
    try:
        yield rig
    finally:
        with _lock("taking"), users:
            if _is_last(users):
                rig.down()


@contextmanager
def own() -> Iterator[Rig]:
    """A rig that nobody else uses."""
    with _lock("taking"):
        rig, users = _free("nobody else")
    with users:
        try:
            rig.up()
            yield rig
        finally:
            rig.down()


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
    """An instance that nobody uses, locked; what a session that was killed has left of it is removed."""
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
    """Whether nobody else uses it; it is locked for us alone then."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _users(number: int) -> Path:
    return _LOCKS / f"{number}"


@contextmanager
def _lock(name: str) -> Iterator[None]:
    _LOCKS.mkdir(parents=True, exist_ok=True)
    with (_LOCKS / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
