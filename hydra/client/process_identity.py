"""The identity of an owner process, and whether the process is alive."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hydra.wire.clock import boot_id

INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"
"""The namespace of the host itself, outside of all containers; the kernel defines the number (PROC_PID_INIT_INO)."""
_START_FIELD: Final = 19
"""Index of the start time in /proc/PID/stat, counted from the state, which follows the name (proc(5), field 22)."""


@dataclass(frozen=True, slots=True)
class ProcessOwner:
    """A process, distinguished from all others that had its pid.

    ``started`` is in clock ticks since the boot, as the kernel counts them: no step of the wall clock changes it.
    ``pid`` is a number in the namespace ``pid_namespace``.
    """

    host: str
    machine_id: str
    boot_id: str
    pid_namespace: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> ProcessOwner:
    """The identity of the calling process."""
    try:
        machine_id = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine_id = ""
    return ProcessOwner(
        host=platform.node(),
        machine_id=machine_id,
        boot_id=boot_id(),
        pid_namespace=str(Path("/proc/self/ns/pid").readlink()),
        pid=os.getpid(),
        started=start_of(os.getpid()) or 0,
    )


def start_of(pid: int) -> int | None:
    """When a process of this host started (clock ticks since the boot); None if there is none or it has ended.

    Raises:
        PermissionError: there may be one, but this user cannot see it.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # a process of another user: /proc may have its start time
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        # The process has just ended, or the system hides processes of other users; this user cannot distinguish the
        # two.
        raise PermissionError(f"process {pid} is hidden") from None
    return None if fields[0] in {"Z", "X"} else int(fields[_START_FIELD])


def why_not_dead(owner: ProcessOwner, me: ProcessOwner, start: Callable[[int], int | None] = start_of) -> str:
    """Why an owner cannot be considered dead; "" if it is certainly dead.

    Args:
        owner: the process that may be dead.
        me: the calling process.
        start: returns when a process of this host started.
    """
    if (owner.host, owner.machine_id) != (me.host, me.machine_id):
        return f"the owner is {owner}; run the command there"
    if owner.boot_id != me.boot_id:
        # Containers made of one image may share name and machine-id on different hosts.
        on_one_host = owner.machine_id and {owner.pid_namespace, me.pid_namespace} == {INITIAL_PID_NAMESPACE}
        return (
            "" if on_one_host else f"the owner is {owner} of another boot or host of this name; run the command there"
        )
    if owner.pid_namespace != me.pid_namespace:
        return f"the owner is {owner} in another container; run the command there"
    try:
        alive = start(owner.pid) == owner.started
    except PermissionError:
        return f"the owner is {owner}, which is hidden from this user"
    return f"the owner is {owner}, which is running" if alive else ""
