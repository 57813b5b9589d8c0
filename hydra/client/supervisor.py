"""The small process between Hydra and a server that Hydra started: however Hydra ends, nothing is left behind.

The owner runs this program by its path, isolated and without site-packages, so the program imports the standard library
only. It reads its standard input, a pipe whose other end only the owner holds:

- ``Q``: SIGTERM to the server, SIGKILL after a grace, remove the folder, exit.
- ``D``: detach; from now on only SIGTERM ends it (a server that outlives its command).
- end of file, or another parent than at the start: the owner has ended. SIGKILL, remove the folder, exit.

It writes ``pid N`` once to standard output, and ``exit STATUS`` if the server ends by itself; then it keeps the folder,
so that the owner can read the log, until the owner has ended or sends ``Q``.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG = 1
POLL_S = 0.2


def main(arguments: list[str]) -> int:
    """Starts the command and waits for its end; the exit status is 0 unless the command could not start."""
    parser = argparse.ArgumentParser(prog="hydra.client.supervisor")
    parser.add_argument("--folder", type=Path, required=True, help="working folder of the command; removed at the end")
    parser.add_argument("--log", type=Path, required=True, help="file for the output of the command")
    parser.add_argument("--owner", type=int, required=True, help="pid of the process that started the supervisor")
    parser.add_argument("--grace", type=float, default=1.5, help="seconds between SIGTERM and SIGKILL")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)

    told_to_stop = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal told_to_stop
        told_to_stop = True

    signal.signal(signal.SIGTERM, stop)
    # The owner handles Ctrl-C and a closed terminal, and sends what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with options.log.open("wb") as log:
        child = subprocess.Popen(
            options.command,
            cwd=options.folder,
            # Java decodes names with its locale; in plain C it cannot even open a folder with an umlaut in its name.
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # The supervisor has one thread and allocates nothing here: safe between fork and exec.
            preexec_fn=_die_with(os.getpid()),
        )
    _say(f"pid {child.pid}")
    gently = _watch(child, options.owner, lambda: told_to_stop)
    _end(child, options.grace if gently else 0.0)
    shutil.rmtree(options.folder, ignore_errors=True)
    return 0


def _die_with(supervisor: int) -> Callable[[], None]:
    libc = ctypes.CDLL(None)

    def before_exec() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:  # the supervisor died before the line above took effect
            os._exit(1)

    return before_exec


def _watch(child: subprocess.Popen[bytes], owner: int, told_to_stop: Callable[[], bool]) -> bool:
    """Waits until the server has to end; returns whether it has time to end in order."""
    attached, reported = True, False
    while not told_to_stop():
        if attached:
            readable, _, _ = select.select([sys.stdin], [], [], POLL_S)
            word = os.read(sys.stdin.fileno(), 1) if readable else None
            if word == b"Q":
                return True
            if word == b"D":
                attached = False
                # A process that waits for the end of the owner's standard error must not wait for this process.
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            elif word is not None or os.getppid() != owner:
                return False
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(POLL_S)
        if not reported and child.poll() is not None:
            _say(f"exit {child.returncode}")
            reported = True
            if not attached:
                return False
    return True


def _end(child: subprocess.Popen[bytes], grace_s: float) -> None:
    if grace_s > 0:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace_s)
    child.kill()
    child.wait()


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # the owner has ended, which the loop will notice
        os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
