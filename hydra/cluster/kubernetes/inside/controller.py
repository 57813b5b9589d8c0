"""The first process of the container ``hydra``: starts the command that was asked for, and ends with its exit code.

Its arguments are the file with the command, as JSON, and the folder of run directories. The command's standard error is
the container's; its standard output follows there at the end, behind a line that says so, as two pipes have no order.
In the folder ``.hydra`` there ``lock`` is locked while this process lives, and ``exit`` holds the exit code afterwards.
"""

from __future__ import annotations

import fcntl
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

OUTPUT = "=== output ==="
ORPHANS_S = 40.0


def main() -> int:
    """Returns the command's exit code."""
    order = json.loads(Path(sys.argv[1]).read_text())
    state = Path(sys.argv[2], ".hydra")
    state.mkdir()
    # However this process ends, the kernel lets go of the lock; the other container waits for that.
    lock = (state / "lock.new").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (state / "lock.new").rename(state / "lock")
    code = run(order, state / "output")
    (state / "exit").write_text(str(code))
    return code


def run(order: dict[str, Any], output: Path) -> int:
    """The exit code of the command; what it says is passed on."""
    children: list[int] = []
    early: list[int] = []

    def pass_on(number: int, _: object) -> None:
        if not children:
            early.append(number)
        # Not Popen.send_signal(): it would wait for the child, and so would we.
        for each in children:
            with suppress(ProcessLookupError):  # it has ended
                os.kill(each, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    wrong = refusal(order)
    if wrong:
        sys.stderr.write(f"hydra: {wrong}\n")
        return 2
    with output.open("wb") as written:
        child = subprocess.Popen(["hydra", *order["arguments"]], stdin=subprocess.DEVNULL, stdout=written)
    children.append(child.pid)
    for one in early:
        pass_on(one, None)
    status = ended(child.pid)
    await_orphans(time.monotonic() + ORPHANS_S)
    if output.stat().st_size:
        sys.stderr.write(f"{OUTPUT}\n")
        sys.stderr.flush()
        with output.open("rb") as whole:
            shutil.copyfileobj(whole, sys.stderr.buffer)
        sys.stderr.buffer.flush()
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def ended(child: int) -> int:
    """The status of a child that has ended; orphans, which are children of the first process too, are reaped."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def await_orphans(deadline: float) -> None:
    """Waits for what a command that was killed has left: it removes what the run has in the cluster.

    Args:
        deadline: s, the monotonic clock; the container's end then kills what is left.
    """
    with suppress(ChildProcessError):  # there is none left
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.05)


def refusal(order: dict[str, Any]) -> str:
    """Why the image will not do; "" if it will."""
    if shutil.which("hydra") is None:
        return f"the image {order['image']} holds no Hydra; build it (Containerfile)"
    # The script beside this one, which a run's first Pod is: it knows what an image holds.
    told = runpy.run_path(str(Path(__file__).with_name("keeper.py")))["image"]()
    version = told["hydra"] or "of no known version"
    if version != order["version"]:
        return f"the image {order['image']} holds Hydra {version}, and this is {order['version']}; build it anew"
    if told["digest"] != order["digest"]:
        return f"the image {order['image']} holds a Hydra {version} of other sources than this one; build it anew"
    return ""


if __name__ == "__main__":
    sys.exit(main())
