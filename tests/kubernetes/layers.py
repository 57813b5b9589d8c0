"""Layers of images, as files in the cache: those that are made of the same are made once."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kubernetes.places import cache, locked

_FORMAT: Final = 1
"""Counts what recipes do not show: another way of making layers."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A tar file, not compressed.

    Attributes:
        path: the file.
        digest: its SHA-256, as hexadecimal digits.
    """

    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """A layer that takes long to make.

    Attributes:
        name: for humans.
        made_of: whatever makes another layer of it when it changes.
        make: writes the layer to a file.
    """

    name: str
    made_of: Sequence[str]
    make: Callable[[Path], None]

    @property
    def is_made(self) -> bool:
        """Whether it is in the cache."""
        return self._noted.exists()

    def layer(self) -> Layer:
        """The layer; made now if it is not in the cache."""
        if not self.is_made:
            with locked(self._path.with_suffix(".lock")):
                if not self.is_made:
                    self._make()
        return Layer(self._path, self._noted.read_text())

    def _make(self) -> None:
        part = self._path.with_suffix(".part")
        part.unlink(missing_ok=True)
        self.make(part)
        with part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        part.replace(self._path)
        self._noted.write_text(digest)

    @property
    def _path(self) -> Path:
        key = hashlib.sha256(json.dumps([_FORMAT, *self.made_of]).encode()).hexdigest()[:12]
        return _folder() / f"{self.name}-{key}.tar"

    @property
    def _noted(self) -> Path:
        return self._path.with_suffix(".sha256")


def of_files(name: str, files: Mapping[str, Path | bytes]) -> Layer:
    """A layer of files by their path in it, those without a suffix to be run; the same files make the same layer."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for inside, content in sorted(files.items()):
            data = content if isinstance(content, bytes) else content.read_bytes()
            member = tarfile.TarInfo(inside)
            member.size = len(data)
            member.mode = 0o644 if Path(inside).suffix else 0o755
            tar.addfile(member, io.BytesIO(data))
    data = buffer.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    path = _folder() / f"{name}-{digest[:12]}.tar"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(data)
        part.replace(path)
    return Layer(path, digest)


def _folder() -> Path:
    folder = cache() / "layers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
