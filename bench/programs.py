"""The native programs of the benches: hydra-client, and the bare programs of native/bench, compiled when first used."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from hydra.native import build

TREE: Final = Path(__file__).resolve().parents[1]
WITHIN_S: Final = 120.0
"""The usual time limit of one measurement by a bare program."""


def lacks() -> str:
    """The Debian packages that compiling needs and that are not installed."""
    return " ".join(build.missing())


def client() -> Path:
    """The program with Hydra's native clients."""
    return _compiled() / "hydra-client"


def bare(name: str) -> Path:
    """A bare program of native/bench; one of a system has the folder of the system before its name."""
    return _compiled() / "bench" / name


def numbers(*command: str | Path | float, within_s: float = WITHIN_S) -> list[float]:
    """Runs a bare program; returns the numbers that it prints.

    Args:
        command: the program with its arguments.
        within_s: its time limit.

    Raises:
        CalledProcessError, TimeoutExpired: it failed, or took too long.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, check=True, text=True, timeout=within_s)
    return [float(word) for word in done.stdout.split()]


@cache
def _compiled() -> Path:
    """The folder of the compiled programs; only what has changed is compiled.

    Raises:
        OSError: they could not be compiled.
    """
    folder = TREE / "build" / "native-bench"
    try:
        build.build(TREE / "native", folder, "-DHYDRA_BENCH=ON", targets=("all",))
    except build.BuildError as e:
        raise OSError(str(e)) from e
    return folder
