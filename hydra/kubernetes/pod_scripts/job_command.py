"""The first process of the container ``hydra``: starts the user's command, and ends with its exit code.

The script's arguments are the file with the command, as JSON, and the folder of run directories. The command's standard
error is the container's; its standard output follows there at the end, after the line OUTPUT, as two pipes have no
order. If the user's standard output is a terminal, the command's is a terminal as well.
In the folder's ``.hydra``, ``lock`` is locked while this process lives, and ``exit`` contains the exit code afterwards.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

OUTPUT = "=== output ==="
ORPHANS_S = 40.0
COPIED_WITHIN_S = 5.0


def main() -> int:
    """Returns the command's exit code."""
    order = json.loads(Path(sys.argv[1]).read_text())
    state = Path(sys.argv[2], ".hydra")
    state.mkdir()
    # The kernel releases the lock however this process ends; the other container waits for that.
    lock = (state / "lock.new").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (state / "lock.new").rename(state / "lock")
    code = run(order, state / "output")
    (state / "exit").write_text(str(code))
    return code


def run(order: dict[str, Any], output: Path) -> int:
    """Runs the command, passes on its output, and returns its exit code."""
    children: list[int] = []
    early: list[int] = []

    def pass_on(number: int, _: object) -> None:
        if not children:
            early.append(number)
        # Not Popen.send_signal(): it would reap the child, for which this process waits too.
        for each in children:
            with suppress(ProcessLookupError):  # it has ended
                os.kill(each, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    wrong = refusal(order)
    if wrong:
        sys.stderr.write(f"hydra: {wrong}\n")
        return 2
    with output.open("wb", buffering=0) as written:
        # The run directory records the command as the user typed it.
        environment = {**os.environ, **order["terminal"], "HYDRA_TYPED": json.dumps(order["typed"])}
        with passed_on(written) if order["terminal"] else nullcontext(written) as its_output:
            child = subprocess.Popen(order["words"], stdin=subprocess.DEVNULL, stdout=its_output, env=environment)
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


@contextmanager
def passed_on(written: io.FileIO) -> Iterator[int]:
    """A terminal for a child process; the process's output is written to the file unchanged."""
    controlling, terminal = os.openpty()
    tty.setraw(terminal)  # a line would end in two characters otherwise
    output = io.FileIO(controlling)

    def copy() -> None:
        try:
            # A terminal without a reader blocks the writer for ever; a closed one gives the writer an error.
            with suppress(ValueError), output:  # this process closed it while another one had it open
                while piece := read(output):
                    while piece:
                        piece = piece[written.write(piece) :]
        except OSError as e:
            sys.stderr.write(f"hydra: the output of the command cannot be kept: {e.strerror}\n")

    copying = threading.Thread(target=copy, name="output", daemon=True)
    copying.start()
    try:
        yield terminal
    finally:
        os.close(terminal)
        copying.join(COPIED_WITHIN_S)  # another process that was left may have it open
        output.close()


def read(terminal: io.FileIO) -> bytes:
    """The next bytes; b"" after the last writer has closed the terminal, which Linux reports as an error."""
    try:
        return terminal.read(65536)
    except OSError:
        return b""


def ended(child: int) -> int:
    """Waits for the child and returns its status; reaps orphans, which are children of the first process too."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def await_orphans(deadline: float) -> None:
    """Waits for processes that a killed command left: they remove the run's objects from the cluster.

    Args:
        deadline: s, the monotonic clock; afterwards the container's end kills the processes that are left.
    """
    with suppress(ChildProcessError):  # there is none left
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.05)


def refusal(order: dict[str, Any]) -> str:
    """Why the image cannot be used; "" if it can."""
    # The script of a run's first Pod, in the same folder, finds out what an image contains.
    contents = runpy.run_path(str(Path(__file__).with_name("keeper_pod.py")))["image"]()
    version = contents["hydra"]
    if not version:
        return f"the image {order['image']} holds no Hydra; build it (Containerfile)"
    if version != order["version"]:
        return f"the image {order['image']} holds Hydra {version}, and this is {order['version']}; build it again"
    if contents["digest"] != order["digest"]:
        return f"the image {order['image']} holds a Hydra {version} of other sources than this one; build it again"
    return ""


if __name__ == "__main__":
    sys.exit(main())
