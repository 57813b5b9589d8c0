"""Builds the programs of Kubernetes from the Go modules, and the images that do not change with the tree: once.

`python -m tests.kubernetes.building` is what `make kubernetes-rig` runs.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Final

from tests.kubernetes import store
from tests.kubernetes.locks import locked
from tests.kubernetes.places import cache, programs
from tests.kubernetes.processes import RigError, patiently

SOURCES: Final = Path(__file__).parent / "programs"


def build_programs() -> None:
    """Compiles what is missing, or was compiled from other sources."""
    digest = hashlib.sha256()
    for path in sorted(p for p in SOURCES.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(SOURCES)}\0".encode() + path.read_bytes())
    programs().mkdir(parents=True, exist_ok=True)
    with locked(programs() / "lock"):
        _compile(digest.hexdigest())


def _compile(digest: str) -> None:
    stamp = programs() / "sources"
    if stamp.exists() and stamp.read_text() == digest:
        return
    # go.sum says what is fetched; a toolchain is never fetched, and the programs run in images without a C library.
    environment = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    command = ["go", "build", "-p", "2", "-trimpath", "-ldflags=-s -w", "-o", f"{programs()}/", "./..."]
    patiently("Compiling Kubernetes (five to ten minutes, once)", command, SOURCES, **environment)
    stamp.write_text(digest)


def reason_not_built() -> str:
    """Why the rig cannot be used here, or ""."""
    if os.geteuid() != 0:
        return "only root can run the Kubernetes rig"
    if not (programs() / "sources").exists() or not store.is_built():
        return "the Kubernetes rig is not built: make kubernetes-rig"
    return ""


if __name__ == "__main__":
    cache().mkdir(parents=True, exist_ok=True)
    try:
        build_programs()
        store.build()
    except RigError as e:
        sys.exit(f"kubernetes-rig: {e}")
