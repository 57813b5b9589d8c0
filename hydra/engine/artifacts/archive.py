"""The archive for agents, made on this machine: Hydra and the libraries and files of a run's programs.

The archive contains ``hydra-run`` and ``program.tar.gz``: a site-packages folder (wheels of this machine, their modules
compiled) and the native clients if there are any. ``hydra-run`` unpacks it once for all groups of an agent and finds a
Python of the same minor version there, or prints why it cannot start.

The modules are compiled here because agents write no compiled modules, and a group would spend most of its start on
compiling. The modules have the format of PEP 552, unchecked, as unpacking an archive changes the times of its files.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import marshal
import os
import platform
import re
import struct
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path, PurePosixPath
from typing import Final

import hydra
from hydra.control import LIBRARIES
from hydra.engine.artifacts.start_script import RUNNER, TEMPLATE, script
from hydra.errors import ClusterError
from hydra.system import Program

_LEFT_OUT: Final = re.compile(r"(^|/)(tests?|__pycache__|include|f2py|_pyinstaller)/|\.(pyc|pyi|pxd|h|a)$")
_GLIBC: Final = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_KEPT: Final = 3
"""The number of archives kept in the cache folder."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """An archive for agents.

    Attributes:
        path: the file.
        name: the name in its URI, with version, Python, machine and digest.
        digest: the digest of its contents; groups of a run reject an archive with another digest.
        sha256: the SHA-256 of the file.
    """

    path: Path
    name: str
    digest: str
    sha256: str


def build(programs: Iterable[Program], cache: Path | None = None) -> Artifact:
    """The archive for this installation, made again only if its contents have changed.

    Args:
        programs: the programs as this machine starts them: ``python -m MODULE …``, or a native client by its path.
        cache: the folder for archives; None is the folder in the user's cache.

    Raises:
        ClusterError: a library is not installed, or the archive cannot be written.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    programs, cache = list(programs), cache or base / "hydra" / "artifacts"
    natives = sorted({Path(p.command[0]) for p in programs if p.command[0] != sys.executable})
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    files, digest = contents(programs, natives)
    name = f"hydra-{version('hydra-scale')}-py{python}-{platform.machine()}-{digest}.tar"
    path = cache / name
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            values = {
                "machine": platform.machine(),
                "digest": digest,
                "python": python,
                "major": str(sys.version_info.major),
                "minor": str(sys.version_info.minor),
                "glibc": ".".join(map(str, glibc_needed(natives))),
            }
            part = cache / f".{name}.{os.getpid()}"
            _write(part, files, script(values))
            part.replace(path)
            known = sorted(cache.glob("hydra-*.tar*"), key=lambda path: path.stat().st_mtime, reverse=True)
            for old in known[_KEPT:]:
                old.unlink(missing_ok=True)
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as e:
        raise ClusterError(f"the agents' archive cannot be made in {cache}: {e}", "set XDG_CACHE_HOME") from e
    return Artifact(path, name, digest, sha256)


def glibc_needed(programs: Iterable[Path]) -> tuple[int, int]:
    """The oldest glibc on which all of these programs run, by the versions of their symbols."""
    found = [(2, 0)]
    for program in programs:
        found += ((int(major), int(minor)) for major, minor in _GLIBC.findall(program.read_bytes()))
    return max(found)


def contents(programs: Sequence[Program], natives: Iterable[Path]) -> tuple[dict[str, Path], str]:
    """The archive's files by their name in it, and a digest of them.

    The digest covers the version of libraries and the content of all other files, so equal installations have
    equal digests.
    """
    files: dict[str, Path] = {}
    digest = hashlib.sha256(TEMPLATE.encode())
    in_python = [p for p in programs if p.command[0] == sys.executable]
    if in_python:
        package = Path(hydra.__file__).parent
        for path in sorted(package.rglob("*.py")):
            inside = path.relative_to(package).as_posix()
            if not _LEFT_OUT.search(inside):
                files[f"site-packages/hydra/{inside}"] = path
                digest.update(f"\0{inside}\0".encode() + path.read_bytes())
        for name in sorted({*LIBRARIES, *(library for p in in_python for library in p.libraries)}):
            files.update(_distribution(name))
            digest.update(f"\0{name}=={version(name)}".encode())
    more = {inside: path for p in programs for inside, path in p.files.items()}
    for inside, path in sorted(more.items()):
        files[f"site-packages/hydra/{inside}"] = path
        with path.open("rb") as file:
            digest.update(f"\0{inside}\0".encode() + hashlib.file_digest(file, "sha256").digest())
    for path in natives:
        files[f"bin/{path.name}"] = path
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return files, digest.hexdigest()[:16]


def _distribution(name: str) -> dict[str, Path]:
    try:
        listed = distribution(name).files or []
    except PackageNotFoundError as e:
        raise ClusterError(f"{name} is not installed, and the agents' archive needs it", f"pip install {name}") from e
    return {
        f"site-packages/{file.as_posix()}": Path(str(file.locate()))
        for file in listed
        if not file.as_posix().startswith(("..", "/")) and not _LEFT_OUT.search(file.as_posix())
    }


def _write(path: Path, files: Mapping[str, Path], runner: str) -> None:
    inner = path.with_name(f"{path.name}.program")
    with gzip.GzipFile(inner, "wb", compresslevel=6, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
        for name, source in sorted(files.items()):
            entry = _entry(
                name, source.stat().st_size, executable=name.startswith("bin/") or os.access(source, os.X_OK)
            )
            with source.open("rb") as file:
                tar.addfile(entry, file)
            if name.endswith(".py") and (code := compiled(source)) is not None:
                tar.addfile(_entry(compiled_name(name), len(code), executable=False), io.BytesIO(code))
    with inner.open("rb") as file, tarfile.open(path, "w") as tar:
        tar.addfile(_entry("program.tar.gz", inner.stat().st_size, executable=False), file)
        tar.addfile(_entry(RUNNER, len(runner.encode()), executable=True), io.BytesIO(runner.encode()))
    inner.unlink()


def _entry(name: str, size: int, *, executable: bool) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o755 if executable else 0o644
    return entry


_UNCHECKED: Final = struct.pack("<I", 0b01)
"""PEP 552 flags of a module that is identified by its source's hash, which Python does not check."""


def compiled_name(source: str) -> str:
    """The path at which Python looks for a source's compiled form, both paths with slashes."""
    path = PurePosixPath(source)
    return str(path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc")


def compiled(source: Path) -> bytes | None:
    """The compiled form of a source file; None if this Python cannot compile it.

    A file that was compiled when it was installed is not compiled again.
    """
    try:
        code = SourceFileLoader(source.stem, str(source)).get_code(source.stem)
    except (SyntaxError, ValueError):
        return None
    return MAGIC_NUMBER + _UNCHECKED + source_hash(source.read_bytes()) + marshal.dumps(code)
