"""The native client's program: its path, the packages that building it needs, and the build.

``setup.py`` loads this file by its path before hydra is installed, so it uses the standard library only. The program is
optional: without it, all Python clients work.
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
"""Path of the program, relative to the package hydra."""

_TOOLS: Final = {"cmake": "cmake", "c++": "g++", "pkg-config": "pkg-config"}
"""Command → the Debian package that contains it."""
_LIBRARIES: Final = {
    "libzmq": "libzmq3-dev",
    "cppzmq": "cppzmq-dev",
    "nlohmann_json": "nlohmann-json3-dev",
    "CLI11": "libcli11-dev",
}
"""Name for pkg-config → its Debian package, of the libraries that all clients need: their control channel is ZeroMQ."""
_OF_SYSTEMS: Final = "*/native-packages"
"""Files of systems, relative to the package hydra; each line is such a name and such a package."""


class BuildError(Exception):
    """The native client could not be built; the text ends with the compiler's output."""


def find() -> Path | None:
    """The installed program; None if there is none."""
    program = Path(__file__).resolve().parents[1] / PROGRAM
    return program if os.access(program, os.X_OK) else None


def missing() -> list[str]:
    """The Debian packages that building needs and that are not installed."""
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
    """Builds ``sources`` (native/) in ``folder``, only the parts that have changed; returns the path of the program.

    Args:
        sources: the folder with CMakeLists.txt.
        folder: keeps the compiled files; created if it does not exist.
        options: further definitions for CMake, ``-DNAME=value`` each.
        targets: targets to build; only the program by default.

    Raises:
        BuildError: the build failed.
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
