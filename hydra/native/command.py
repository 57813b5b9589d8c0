"""How the native client is started: its program and the flags that only it has."""

from __future__ import annotations

from hydra.errors import MissingDependencyError
from hydra.model import NativeSpec, Role
from hydra.native.build import find, missing


def command(system: str, role: Role, spec: NativeSpec) -> tuple[str, ...]:
    """The command line of a group, to which the group's own flags are appended.

    Raises:
        MissingDependencyError: the program was not built; the text names the packages that building it needs.
    """
    program = find()
    if program is None:
        packages = " ".join(missing())
        first = f"apt install {packages}, then " if packages else ""
        raise MissingDependencyError("the native client is not built", f"{first}install Hydra again (pip install .)")
    flags = ["--pacing", spec.pacing]
    if role == "subscriber":
        flags += ["--clients-per-process", str(spec.clients_per_process)]
    for name, value in spec.system.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            flags += [flag] if value else []
        elif value is not None:
            flags += [flag, str(value)]
    kind = f"{system}-{'pub' if role == 'publisher' else 'sub'}"
    return (str(program), kind, *flags)
