"""The command line of the native client: its program and the flags that only it has."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from hydra.errors import MissingDependencyError
from hydra.model import Figure, NativeSpec, Role
from hydra.native.build import BuildError, compile_once, find, has_sources, missing
from hydra.wire import kind_of


def command(
    system: str, role: Role, spec: NativeSpec, options: Mapping[str, Figure] | None = None, *, tls: bool = False
) -> tuple[str, ...]:
    """The command line of a group, to which the group's own flags are appended.

    Args:
        system: the name of the system.
        role: the role of the clients.
        spec: the options of native clients of every system.
        options: the system's own options by name; None: there are none.
        tls: whether the clients use TLS.

    Raises:
        MissingDependencyError: the program cannot be compiled, or was built without this system or without its TLS; the
            text names the packages that building needs.
    """
    kind = kind_of(system, role)
    program = find() or _compiled()
    offered = _help(program)
    if kind not in re.findall(r"\w+-(?:pub|sub)\b", offered):
        raise MissingDependencyError(f"the native client was built without {system}", _build())
    if tls and system not in re.findall(r"TLS: (.*)", offered + "\nTLS: ")[0].split():
        raise MissingDependencyError(
            f"the native client was built without TLS for {system}, as in every wheel of Hydra",
            "choose another --implementation, or install Hydra from its sources",
        )
    flags = ["--pacing", spec.pacing]
    if role == "subscriber":
        flags += ["--clients-per-process", str(spec.clients_per_process)]
    for name, value in (options or {}).items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            flags += [flag] if value else []
        elif value is not None:
            flags += [flag, str(value)]
    return (str(program), kind, *flags)


def _compiled() -> Path:
    """The program, compiled from the tree that Hydra was installed from; an installed copy of Hydra has no sources.

    Raises:
        MissingDependencyError: there are no sources, a package is missing, the compiler failed, or the folder cannot be
            written.
    """
    if not has_sources() or missing():
        raise MissingDependencyError("the native client is not built", _build("run the command again"))
    try:
        return compile_once(lambda line: sys.stderr.write(f"{line}\n"))
    except BuildError as e:
        raise MissingDependencyError(f"the native client cannot be compiled: {e}", "correct its sources") from e
    except OSError as e:
        raise MissingDependencyError(
            f"the native client cannot be compiled: {e}",
            "check its permissions and the free space, then run make native",
        ) from e


def _build(then: str = "make native") -> str:
    """What makes a program that is complete.

    Args:
        then: the last step in a folder with sources; an installed copy of Hydra has to be installed again.
    """
    packages = " ".join(missing())
    again = then if has_sources() else "install Hydra again (pip install .)"
    return f"apt-get install {packages}, then {again}" if packages else again


@cache
def _help(program: Path) -> str:
    """The program's help, with its kinds of clients: a system whose library was missing at the build is not in it."""
    try:
        done = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=20, check=True)
    except subprocess.CalledProcessError as e:
        lines = e.stderr.strip().splitlines()
        raise MissingDependencyError(f"{program} does not run: {lines[-1] if lines else e}", _build()) from e
    except (OSError, subprocess.SubprocessError) as e:
        raise MissingDependencyError(f"{program} does not run: {e}", _build()) from e
    return done.stdout
