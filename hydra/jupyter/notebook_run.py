"""Starts a sweep from a cell of ``sweep.ipynb``, with the same command as in a terminal."""

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
        scenario: a command of Hydra that runs a sweep.
        out: the run directory to make.
        flags: values by the flag's name with underscores; a list is joined with commas, True is a flag without a value,
            None and False leave the flag out.
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

    Jupyter's stop button ends the sweep in order; what was measured before is returned.

    Args:
        scenario: a command of Hydra that runs a sweep.
        out: the run directory to make; "" makes one in ``runs``.
        flags: see :func:`command`.

    Raises:
        HydraError: no command is named, or the sweep failed; its output is in the cell.
    """
    if not scenario:
        raise HydraError(
            "no sweep is named", "set SCENARIO to a command that runs a sweep: hydra --help lists the commands"
        )
    directory = Path(out) if out else Path("runs") / f"notebook-{time.strftime('%Y%m%d-%H%M%S')}"
    words = command(scenario, directory, flags)
    _print(f"$ {shlex.join(['hydra', *words])}\n")
    program = [sys.executable, "-m", "hydra.cli.main", *words]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            _follow(process)
        except KeyboardInterrupt:
            # The stop button interrupts the kernel's whole process group, so the run is ending already.
            _follow(process)
    if process.returncode not in (EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED):
        raise HydraError(f"hydra {scenario} ended with exit code {process.returncode}", "see its error above")
    return load(directory)


def _follow(process: subprocess.Popen[str]) -> None:
    for line in process.stdout or ():
        _print(line)


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
