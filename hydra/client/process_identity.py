"""Which process owns something, and whether it is still there."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hydra.wire.clock import boot_id

INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"
"""That of the host itself, outside of every container; its number is the kernel's (PROC_PID_INIT_INO)."""
_START_FIELD: Final = 19
"""Where the start time is in /proc/PID/stat, counted from the state, which is behind the name (proc(5), field 22)."""


@dataclass(frozen=True, slots=True)
class ProcessOwner:
    """A process, told from every other that ever had its number.

    ``started`` is the kernel's: clock ticks since the boot, which no step of the wall clock changes.
    ``pid_namespace`` is the one in which ``pid`` counts.
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
    """Ourselves."""
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
    """When a process of this host started (clock ticks since the boot), None if there is none or it has ended.

    Raises:
        PermissionError: there is one, and it is hidden from us.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # somebody else's: /proc may tell
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        # It has just ended, or the system hides other people's processes: nobody can tell from here.
        raise PermissionError(f"process {pid} is hidden") from None
    return None if fields[0] in {"Z", "X"} else int(fields[_START_FIELD])


def why_not_dead(owner: ProcessOwner, me: ProcessOwner, start: Callable[[int], int | None] = start_of) -> str:
    """Why an owner cannot be taken for dead; "" if it is known to be.

    Args:
        owner: whose end is asked for.
        me: who asks.
        start: tells when a process of this host started.
    """
    if (owner.host, owner.machine_id) != (me.host, me.machine_id):
        return f"it belongs to {owner}, ask there"
    if owner.boot_id != me.boot_id:
        # Containers made of one image may share name and machine-id on different hosts.
        on_one_host = owner.machine_id and {owner.pid_namespace, me.pid_namespace} == {INITIAL_PID_NAMESPACE}
        return (
            "" if on_one_host else f"it belongs to {owner} at another boot, or on another host of this name, ask there"
        )
    if owner.pid_namespace != me.pid_namespace:
        return f"it belongs to {owner} in another container, ask there"
    try:
        alive = start(owner.pid) == owner.started
    except PermissionError:
        return f"it belongs to {owner}, which is hidden from this user"
    return f"it belongs to {owner}, which is running" if alive else ""
