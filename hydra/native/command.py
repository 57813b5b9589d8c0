"""How the native client is started: its program and the flags that only it has."""

from __future__ import annotations

from hydra.errors import MissingDependencyError
from hydra.model import NativeSpec, Role, System
from hydra.native.build import find, missing


def command(system: System, role: Role, spec: NativeSpec) -> tuple[str, ...]:
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
    if system == "zmq":
        flags += ["--io-threads", str(spec.io_threads), "--transport", spec.transport]
        flags += ["--sndbuf", str(spec.sndbuf), "--rcvbuf", str(spec.rcvbuf)]
        flags += ["--secure"] if spec.secure else []
    kind = f"{system}-{'pub' if role == 'publisher' else 'sub'}"
    return (str(program), kind, *flags)
