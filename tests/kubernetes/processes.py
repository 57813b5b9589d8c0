"""The processes of an instance: each carries its role in its environment, so that nothing else need be remembered."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from tests.kubernetes.places import TREE, Place

_MARK = "HYDRA_RIG_PROCESS"
_T = TypeVar("_T")


class RigError(Exception):
    """The rig could not be built, or does not do what it should."""


def start(place: Place, role: str, command: Sequence[str | Path]) -> None:
    """Starts a process that outlives this one; what it says is appended to its log."""
    # Nothing else of the environment: a proxy would be asked for what is on this machine.
    environment = {_MARK: f"{place.number}/{role}", "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "HOME": "/root"}
    with place.log(role).open("ab") as log:
        # A daemon: the process that starts it need not wait for it, and leaves no zombie.
        subprocess.run(
            ["setsid", "--fork", *command],
            env=environment,
            cwd=place.run,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=True,
        )


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
        ours = wanted in variables if role else any(each.startswith(wanted) for each in variables)
        if ours and int(folder.name) != os.getpid() and program in (None, name):
            found.append(int(folder.name))
    return found


def kill(find: Callable[[], Iterable[int]], what: int = signal.SIGKILL, within_s: float = 10) -> None:
    """Sends a signal to all that ``find`` gives until there are none."""
    deadline = time.monotonic() + within_s
    while pids := list(find()):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, what)
        if time.monotonic() > deadline:
            raise RigError(f"processes {pids} do not end")
        time.sleep(0.02)


def until(check: Callable[[], _T], what: str, within_s: float = 60) -> _T:
    """What ``check`` gives as soon as it is true.

    Raises:
        RigError: it is not in time.
    """
    deadline = time.monotonic() + within_s
    while not (answer := check()):
        if time.monotonic() > deadline:
            raise RigError(f"waited {within_s:.0f} s for {what}")
        time.sleep(0.05)
    return answer


def patiently(what: str, command: Sequence[str | Path], cwd: Path | None = None, **variables: str) -> None:
    """Runs a command that takes long, and says that it goes on.

    Raises:
        RigError: it failed; the last lines that it has said are in it.
    """
    done = subprocess.run(
        [TREE / "scripts" / "patiently", what, *command],
        cwd=cwd,
        env=os.environ | variables,
        stdout=2,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RigError(f"{what} failed: " + "; ".join(done.stderr.strip().splitlines()[-3:]))


def say(text: str) -> None:
    """Tells what takes long."""
    sys.stderr.write(f"{text} …\n")
    sys.stderr.flush()
