#!/usr/bin/env python3
"""Makes wheels whose native client runs on every Linux with a glibc of 2018 or newer: ``tox run -e wheels``.

The client and its libraries (``native/portable``) are compiled by zig's C++ compiler, which links against the stubs of
an old glibc whatever the machine has, for this processor and for another. Why it is done so: ``docs/packaging.md``.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

TREE: Final = Path(__file__).resolve().parents[1]
MACHINES: Final = ("x86_64", "aarch64")
GLIBC: Final = (2, 28)
"""The oldest one that a wheel's client runs with: that of Debian 10 and Red Hat 8."""
TAG: Final = f"manylinux_{GLIBC[0]}_{GLIBC[1]}"
HEADERS: Final = ("CLI/CLI.hpp", "nlohmann/json.hpp", "zmq.hpp")
"""Libraries of headers only, taken from the build machine: the packages that every build of the client needs."""
LEFT_OUT: Final = (
    ".git",
    ".tox",
    ".venv",
    "build",
    "dist",
    "runs",
    "*.egg-info",
    "__pycache__",
    "hydra-client*",
)

TOOLCHAIN: Final = """\
set(CMAKE_C_COMPILER {folder}/cc)
set(CMAKE_CXX_COMPILER {folder}/c++)
set(CMAKE_AR {folder}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB {folder}/ranlib CACHE FILEPATH "")
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR {machine})
set(CMAKE_FIND_ROOT_PATH {prefix})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
"""
"""Nothing of the build machine is found but its programs."""


class WheelError(Exception):
    """No such wheel can be made here; the text says why and what to try."""


def compiler_text(zig: Path, tool: str, machine: str) -> str:
    """A program that is one of zig's tools: ``cc`` and ``c++`` for this machine and the old glibc."""
    # Stripped (-s) here and not by CMake: zig compiles its C++ library once for each set of such flags.
    target = f" -target {machine}-linux-gnu.{GLIBC[0]}.{GLIBC[1]} -s" if tool in {"cc", "c++"} else ""
    return f'#!/bin/sh\nexec "{zig}" {tool}{target} "$@"\n'


def write_toolchain(folder: Path, machine: str, prefix: Path) -> Path:
    """The compiler of one machine, for CMake.

    Raises:
        WheelError: zig is not installed.
    """
    zig = Path(sysconfig.get_path("purelib")) / "ziglang" / "zig"
    if not zig.exists():
        raise WheelError(f"there is no {zig}; try pip install ziglang, or tox run -e wheels, which has it")
    folder.mkdir(parents=True, exist_ok=True)
    for tool in ("cc", "c++", "ar", "ranlib"):
        program = folder / tool
        program.write_text(compiler_text(zig, tool, machine))
        program.chmod(0o755)
    toolchain = folder / "toolchain.cmake"
    toolchain.write_text(TOOLCHAIN.format(folder=folder, machine=machine, prefix=prefix))
    return toolchain


def copy_headers(prefix: Path, system: Path = Path("/usr")) -> None:
    """Puts the libraries of headers, and how CMake finds them, where the others are.

    Raises:
        WheelError: some are not installed.
    """
    missing = [name for name in HEADERS if not (system / "include" / name).exists()]
    if missing:
        raise WheelError(f"no {' '.join(missing)} in {system / 'include'}; try scripts/system-packages native")
    for name in HEADERS:
        header = system / "include" / name
        target = prefix / "include" / name
        if header.parent == system / "include":
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(header, target)
        else:
            shutil.copytree(header.parent, target.parent, dirs_exist_ok=True)
    for folder in ("share/cmake", "lib/cmake"):
        for package in ("CLI11", "nlohmann_json"):
            if (system / folder / package).is_dir():
                shutil.copytree(system / folder / package, prefix / folder / package, dirs_exist_ok=True)


def build_client(folder: Path, machine: str, archives: Path) -> Path:
    """Compiles the libraries and the client; where the program is."""
    prefix = folder / "prefix"
    toolchain = write_toolchain(folder / "tools", machine, prefix)
    copy_headers(prefix)
    with_tools = [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DCMAKE_BUILD_TYPE=Release"]
    here = os.environ | {"PKG_CONFIG_LIBDIR": str(prefix / "lib" / "pkgconfig"), "PKG_CONFIG_PATH": ""}
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "1")
    libraries = folder / "libraries"
    places = [f"-DCMAKE_INSTALL_PREFIX={prefix}", f"-DHYDRA_ARCHIVES={archives}"]
    run(["cmake", "-S", TREE / "native" / "portable", "-B", libraries, *with_tools, *places], here)
    run(["cmake", "--build", libraries, "--parallel", jobs], here | {"CMAKE_BUILD_PARALLEL_LEVEL": jobs})
    client = folder / "client"
    own = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DPKG_CONFIG_ARGN=--static"]
    run(["cmake", "-S", TREE / "native", "-B", client, *with_tools, *own], here)
    run(["cmake", "--build", client, "--parallel", jobs], here)
    return client / "hydra-client"


def build_wheel(program: Path, machine: str, folder: Path, out: Path) -> Path:
    """The wheel with this program in it, from a copy of the tree: setuptools leaves a build folder behind."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(TREE, tree, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    fresh = folder / "wheel"
    shutil.rmtree(fresh, ignore_errors=True)
    told = os.environ | {"HYDRA_WHEEL_CLIENT": str(program), "HYDRA_WHEEL_PLATFORM": f"{TAG}_{machine}"}
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", fresh, tree], told)
    shutil.rmtree(tree)
    (wheel,) = fresh.glob("*.whl")
    out.mkdir(parents=True, exist_ok=True)
    for older in out.glob(f"*_{machine}.whl"):
        older.unlink()
    return Path(shutil.copy2(wheel, out))


def check(wheel: Path, program: Path, machine: str) -> None:
    """Shows what auditwheel says of the wheel, and has the program tell its version.

    Raises:
        WheelError: the wheel asks for more than its name says, or the program does not run.
    """
    done = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True, check=False
    )
    say(done.stdout.strip() or done.stderr.strip())
    if done.returncode != 0 or f'"{TAG}_{machine}"' not in done.stdout.replace("\n", " "):
        raise WheelError(f"auditwheel does not say of {wheel.name} that it is {TAG}_{machine}; what it says is above")
    emulator = [] if machine == platform.machine() else [shutil.which(f"qemu-{machine}-static") or ""]
    if emulator == [""]:
        say(f"{machine}: not run, for want of qemu-{machine}-static (Debian's package qemu-user-static)")
        return
    run([*emulator, *loader(machine, emulator), program, "--version"], os.environ)


def loader(machine: str, emulator: Iterable[str]) -> list[str]:
    """How an emulator finds the loader and glibc of another machine: where Debian's cross packages put them."""
    root = Path(f"/usr/{machine}-linux-gnu")
    return ["-L", str(root)] if list(emulator) and root.is_dir() else []


def run(command: Iterable[str | Path], environment: Mapping[str, str]) -> None:
    """Runs a command whose output is shown.

    Raises:
        WheelError: it failed.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, env=dict(environment), check=False)
    except FileNotFoundError as e:
        raise WheelError(f"there is no {words[0]}; try scripts/system-packages native") from e
    if done.returncode != 0:
        raise WheelError(f"{' '.join(words[:4])} … failed; what it says is above")


def say(text: str) -> None:
    """A line of this script's own."""
    print(text, flush=True)  # noqa: T201  # a command's output


def main() -> int:
    """Makes the wheels that the command line asks for; the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--machine", action="append", choices=MACHINES, help="only for this one (default: for all)")
    parser.add_argument("--out", type=Path, default=TREE / "dist", help="where the wheels go (default: dist)")
    parser.add_argument("--work", type=Path, default=TREE / "build" / "wheels", help="what is compiled is kept here")
    asked = parser.parse_args()
    work = asked.work.resolve()
    archives = Path(os.environ.get("HYDRA_ARCHIVES", work / "archives")).resolve()
    try:
        for machine in asked.machine or MACHINES:
            say(f"== {TAG}_{machine}")
            folder = work / machine
            program = build_client(folder, machine, archives)
            wheel = build_wheel(program, machine, folder, asked.out)
            check(wheel, program, machine)
            say(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")
    except WheelError as e:
        sys.stderr.write(f"scripts/wheels.py: {e}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
