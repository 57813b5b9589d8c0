"""The processes of an instance: each carries its role in its environment, so that nothing else need be remembered."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from tests.kubernetes.places import TREE, Place
from tests.suite.waiting import LONG_S, wait_until

_MARK = "HYDRA_RIG_PROCESS"
_T = TypeVar("_T")


class RigError(Exception):
    """The rig could not be built, or does not do what it should."""


def start(place: Place, role: str, command: Sequence[str | Path]) -> None:
    """Starts a process that outlives this one; its output is appended to its log."""
    # Nothing else of the environment: a proxy would be asked for what is on this machine.
    env = {_MARK: f"{place.number}/{role}", "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "HOME": "/root"}
    with place.log(role).open("ab") as log:
        # A daemon: the process that starts it need not wait for it, and leaves no zombie.
        words, unread = ["setsid", "--fork", *command], subprocess.DEVNULL
        subprocess.run(words, env=env, cwd=place.run, stdin=unread, stdout=log, stderr=log, check=True)


def of(place: Place, role: str | None = None, program: str | None = None) -> list[int]:
    """The ids of an instance's processes.

    Args:
        place: the instance.
        role: only those of this role; None is all.
        program: only those which are called so: what containerd starts inherits its environment.
    """
    wanted = f"{_MARK}={place.number}/{role or ''}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            name = Path(os.fsdecode((folder / "cmdline").read_bytes().split(b"\0")[0])).name
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # has ended meanwhile
        own = wanted in variables if role else any(each.startswith(wanted) for each in variables)
        if own and int(folder.name) != os.getpid() and program in (None, name):
            found.append(int(folder.name))
    return found


def kill(find: Callable[[], Iterable[int]]) -> None:
    """Kills all that ``find`` gives until there are none."""

    def all_have_ended() -> bool:
        pids = list(find())
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    until(all_have_ended, "the end of processes that were killed", saw=lambda: list(find()))


def until(check: Callable[[], _T], what: str, saw: Callable[[], object] | None = None) -> _T:
    """What ``check`` gives as soon as it is true.

    Raises:
        RigError: it is not in time.
    """
    try:
        return wait_until(check, what, LONG_S, saw=saw)
    except AssertionError as e:
        raise RigError(str(e)) from None


def patiently(what: str, command: Sequence[str | Path], cwd: Path | None = None, **variables: str) -> None:
    """Runs a command that takes long, and prints that it continues.

    Raises:
        RigError: it failed; its last lines are in it.
    """
    words, env = [TREE / "scripts" / "patiently", what, *command], os.environ | variables
    done = subprocess.run(words, cwd=cwd, env=env, stdout=2, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RigError(f"{what} failed: " + "; ".join(done.stderr.strip().splitlines()[-3:]))


def show(text: str) -> None:
    """Prints what takes long."""
    sys.stderr.write(f"{text} …\n")
    sys.stderr.flush()
