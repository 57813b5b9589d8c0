"""Builds the programs of Kubernetes from the Go modules, and the images that do not change with the tree: once.

`make kubernetes-rig` calls :func:`main`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Final

from tests.kubernetes import store
from tests.kubernetes.places import cache, locked, programs
from tests.kubernetes.processes import RigError, patiently

SOURCES: Final = Path(__file__).parent / "programs"


def build_programs() -> None:
    """Compiles what is missing, or was compiled from other sources."""
    with locked(programs() / "lock"):
        if not _are_compiled():
            _compile()


def _compile() -> None:
    # go.sum names what is fetched; a toolchain is never fetched, and the programs run in images without a C library.
    path = f"{os.environ['PATH']}:/usr/local/go/bin"
    # The compiler needs more memory and less time if it collects garbage less often.
    environment = {"CGO_ENABLED": "0", "GOGC": "400", "GOTOOLCHAIN": "local", "GOWORK": "off", "PATH": path}
    command = ["go", "build", "-p", "2", "-trimpath", "-ldflags=-s -w", "-o", f"{programs()}/", "./..."]
    patiently("Compiling Kubernetes (five to ten minutes, once)", command, SOURCES, **environment)
    _stamp().write_text(_digest())


def reason_unusable() -> str:
    """Why no rig can run on this machine, whatever is built; or ""."""
    if os.geteuid() != 0:
        return "only root can run the Kubernetes rig"
    if not Path("/sys/fs/cgroup/pids/cgroup.procs").exists():
        return "the Kubernetes rig needs control groups of version 1, and this machine has version 2 only"
    return ""


def reason_not_built() -> str:
    """Why the rig cannot be used here, or ""."""
    if reason := reason_unusable():
        return reason
    try:
        built = _are_compiled() and store.is_built()
    except RigError as e:
        return str(e)
    return "" if built else "the Kubernetes rig is not built, or not for this tree: make kubernetes-rig"


def _are_compiled() -> bool:
    return _stamp().exists() and _stamp().read_text() == _digest()


def _stamp() -> Path:
    return programs() / "sources"


def _digest() -> str:
    """The digest of the sources of the programs."""
    digest = hashlib.sha256()
    for path in sorted(p for p in SOURCES.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(SOURCES)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def main() -> None:
    """Builds what is missing; ends the program with the reason if that is impossible."""
    if reason := reason_unusable():
        sys.exit(f"kubernetes-rig: {reason}")
    cache().mkdir(parents=True, exist_ok=True)
    try:
        build_programs()
        store.build()
    except RigError as e:
        sys.exit(f"kubernetes-rig: {e}")
