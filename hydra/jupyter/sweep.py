"""What the cells of ``sweep.ipynb`` call: a sweep that is started from a cell, as a user would at a terminal."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED, HydraError
from hydra.jupyter.run_data import RunData, load


def command(scenario: str, out: Path, flags: Mapping[str, object]) -> list[str]:
    """The command line of a sweep.

    Args:
        scenario: a command of Hydra that sweeps.
        out: the run directory that it makes.
        flags: by the flag's name with underscores; a list is joined with commas, True is a flag without a value, None
            and False leave it out.
    """
    words = [scenario, "--out", str(out)]
    for name, value in flags.items():
        if value is None or value is False:
            continue
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            several = isinstance(value, Sequence) and not isinstance(value, str)
            words.append(",".join(map(str, value)) if several else str(value))  # type: ignore[call-overload]
    return words


def start(scenario: str, out: str | Path = "", **flags: object) -> RunData:
    """Runs a sweep, shows its progress in the cell, and returns the run.

    Jupyter's stop button ends the sweep cleanly; what was measured until then is returned.

    Args:
        scenario: a command of Hydra that sweeps.
        out: the run directory to make; "" makes one below ``runs``.
        flags: see :func:`command`.

    Raises:
        HydraError: no command is named, or the sweep could not be run; what it said is in the cell.
    """
    if not scenario:
        raise HydraError("no sweep is named", "set SCENARIO to a command that sweeps: hydra --help lists them")
    directory = Path(out) if out else Path("runs") / f"notebook-{time.strftime('%Y%m%d-%H%M%S')}"
    words = command(scenario, directory, flags)
    _say(f"$ {shlex.join(['hydra', *words])}\n")
    program = [sys.executable, "-m", "hydra.cli.main", *words]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            _follow(process)
        except KeyboardInterrupt:
            # The stop button reaches the kernel's whole process group: the run is on its way out already.
            _follow(process)
    if process.returncode not in (EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED):
        raise HydraError(f"hydra {scenario} ended with exit code {process.returncode}", "it says above what is wrong")
    return load(directory)


def _follow(process: subprocess.Popen[str]) -> None:
    for line in process.stdout or ():
        _say(line)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
