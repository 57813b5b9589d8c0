"""The command line of the native client: its program and the flags that only it has."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

from hydra.errors import MissingDependencyError
from hydra.model import NativeSpec, Role
from hydra.native.build import find, missing
from hydra.wire.protocol_constants import kind_of


def command(system: str, role: Role, spec: NativeSpec) -> tuple[str, ...]:
    """The command line of a group, to which the group's own flags are appended.

    Raises:
        MissingDependencyError: the program was not built, or was built without this system; the text names the packages
            that building needs.
    """
    kind = kind_of(system, role)
    program = find()
    if program is None:
        raise MissingDependencyError("the native client is not built", _build())
    if kind not in _offered(program):
        raise MissingDependencyError(f"the native client was built without {system}", _build())
    flags = ["--pacing", spec.pacing]
    if role == "subscriber":
        flags += ["--clients-per-process", str(spec.clients_per_process)]
    for name, value in spec.system.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            flags += [flag] if value else []
        elif value is not None:
            flags += [flag, str(value)]
    return (str(program), kind, *flags)


def _build() -> str:
    packages = " ".join(missing())
    first = f"apt install {packages}, then " if packages else ""
    return f"{first}install Hydra again (pip install .)"


@cache
def _offered(program: Path) -> frozenset[str]:
    """The kinds of client in the program's help; a system whose library was missing at the build is not among them."""
    try:
        done = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=20, check=True)
    except subprocess.CalledProcessError as e:
        said = e.stderr.strip().splitlines()
        raise MissingDependencyError(f"{program} does not run: {said[-1] if said else e}", _build()) from None
    except (OSError, subprocess.SubprocessError) as e:
        raise MissingDependencyError(f"{program} does not run: {e}", _build()) from None
    return frozenset(re.findall(r"\w+-(?:pub|sub)\b", done.stdout))
