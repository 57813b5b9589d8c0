"""The native client's program: its path, the packages that building it needs, and the build.

``setup.py`` loads this file by its path before hydra is installed, so it uses the standard library only. The program is
optional: without it, all Python clients work.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

PROGRAM: Final = "native/hydra-client"
"""Path of the program, relative to the package hydra."""

_TOOLS: Final = {"cmake": "cmake", "c++": "g++", "make": "make", "pkg-config": "pkg-config"}
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


_TREE: Final = Path(__file__).resolve().parents[2]
"""The folder of sources, if Hydra runs from it; an installed copy of Hydra has none."""
_PERCENT: Final = re.compile(r"\[ *(\d+)%\]")


def has_sources() -> bool:
    """Whether Hydra runs from a folder that has the sources of the program."""
    return (_TREE / "native" / "CMakeLists.txt").is_file()


def compile_once(notify: Callable[[str], object], *, again: bool = False) -> Path:
    """Compiles the program of the folder that Hydra runs from; of two processes, one compiles and the other waits.

    Args:
        notify: takes a line for each tenth of the work.
        again: whether a program that is there is compiled again from what has changed.

    Raises:
        BuildError: the build failed.
        OSError: the folder cannot be written.
    """
    with locked(_TREE) as folder:
        program = None if again else find()
        return program or install(build(_TREE / "native", folder, notify=notify), _TREE / "hydra" / PROGRAM)


@contextlib.contextmanager
def locked(tree: Path) -> Iterator[Path]:
    """Keeps the folder of compiled files of a tree from other processes; the value is this folder."""
    folder = tree / "build" / "native"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def install(built: Path, program: Path) -> Path:
    """Copies the built program to its place, which it returns."""
    program.parent.mkdir(parents=True, exist_ok=True)
    # A program that runs cannot be overwritten, but it can be replaced.
    fresh = program.with_suffix(".new")
    shutil.copy2(built, fresh)
    return fresh.replace(program)


def build(
    sources: Path,
    folder: Path,
    *options: str,
    targets: Sequence[str] = ("hydra-client",),
    notify: Callable[[str], object] = lambda _: None,
) -> Path:
    """Builds ``sources`` (native/) in ``folder``, only the parts that have changed; returns the path of the program.

    Args:
        sources: the folder with CMakeLists.txt.
        folder: keeps the compiled files; created if it does not exist.
        options: further definitions for CMake, ``-DNAME=value`` each.
        targets: targets to build; only the program by default.
        notify: takes lines of progress.

    Raises:
        BuildError: the build failed.
    """
    _run("cmake", "-S", sources, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", *options)
    processes = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
    _run("cmake", "--build", folder, "--parallel", processes, "--target", *targets, notify=notify)
    return folder / "hydra-client"


def _run(*command: str | Path, notify: Callable[[str], object] = lambda _: None) -> None:
    """Runs a command of the build.

    Raises:
        BuildError: it failed.
    """
    output, tenths = "", -1
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            output = (output + line)[-4000:]
            found = _PERCENT.match(line)
            if found and int(found[1]) // 10 > tenths:
                tenths = int(found[1]) // 10
                notify(f"compiling the native client, once: {found[1]} %")
    if process.returncode != 0:
        raise BuildError(f"{' '.join(map(str, command))}\n{output}")


if __name__ == "__main__":
    # Compiles the changed parts: make native.
    try:
        print(compile_once(print, again=True))  # noqa: T201  # a command's output
    except (BuildError, OSError) as e:
        sys.exit(f"the native client cannot be compiled: {e}")
