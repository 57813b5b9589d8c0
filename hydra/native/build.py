"""The native client's program: where it is, what building it needs, and how it is built.

``setup.py`` loads this file by its path before hydra is installed, so it uses the standard library only. The program is
optional: where it is missing, everything in Python works.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PROGRAM: Final = "native/hydra-client"
"""Where the program lies, seen from the package hydra."""

_TOOLS: Final = {"cmake": "cmake", "c++": "g++", "pkg-config": "pkg-config"}
"""Command → the Debian package that brings it."""
_LIBRARIES: Final = {
    "libzmq": "libzmq3-dev",
    "cppzmq": "cppzmq-dev",
    "nlohmann_json": "nlohmann-json3-dev",
    "CLI11": "libcli11-dev",
}
"""Name for pkg-config → the Debian package that brings it, of what all clients take: their channel is ZeroMQ's."""
_OF_SYSTEMS: Final = "*/native-packages"
"""Files of systems, seen from the package hydra: such a name and such a package a line."""


class BuildError(Exception):
    """The native client could not be built; the text ends with what the compiler said."""


def find() -> Path | None:
    """The installed program, None where there is none."""
    program = Path(__file__).resolve().parents[1] / PROGRAM
    return program if os.access(program, os.X_OK) else None


def missing() -> list[str]:
    """The Debian packages that building needs and that are not there."""
    tools = [package for command, package in _TOOLS.items() if shutil.which(command) is None]
    if shutil.which("pkg-config") is None:
        return [*tools, *_libraries().values()]
    return tools + [package for name, package in _libraries().items() if not _known(name)]


def _libraries() -> dict[str, str]:
    files = sorted(Path(__file__).resolve().parents[1].glob(_OF_SYSTEMS))
    return _LIBRARIES | dict(line.split() for file in files for line in file.read_text().splitlines())


def _known(library: str) -> bool:
    return subprocess.run(["pkg-config", "--exists", library], check=False).returncode == 0


def build(sources: Path, folder: Path, *options: str, targets: Sequence[str] = ("hydra-client",)) -> Path:
    """Builds what is in ``sources`` (native/) in ``folder``, anew only where something changed; the program.

    Args:
        sources: the folder with CMakeLists.txt.
        folder: keeps what was compiled; made if it is not there.
        options: further definitions for CMake, ``-DNAME=value`` each.
        targets: what is built; the program alone unless others are named.

    Raises:
        BuildError: it cannot be built.
    """
    _run("cmake", "-S", sources, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", *options)
    processes = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
    _run("cmake", "--build", folder, "--parallel", processes, "--target", *targets)
    return folder / "hydra-client"


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}")


if __name__ == "__main__":
    print(find() or "not built", *missing(), sep="\n  missing: ")  # noqa: T201  # a command's output
    sys.exit(find() is None)
