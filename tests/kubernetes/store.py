"""containerd's store of images: filled once, and lent to every node of every instance.

What containerd has unpacked it only reads. So the store of a node is a copy of the small databases, with links to what
was unpacked: made in milliseconds, and thrown away with the node.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.kubernetes import images
from tests.kubernetes.images import Image
from tests.kubernetes.places import cache
from tests.kubernetes.processes import RigError, until

_CONTENT: Final = Path("io.containerd.content.v1.content")
_SNAPSHOTS: Final = Path("io.containerd.snapshotter.v1.overlayfs")
_DATABASES: Final = (Path("io.containerd.metadata.v1.bolt/meta.db"), _SNAPSHOTS / "metadata.db")


def build() -> Path:
    """The store with the images that do not change with the tree; filled if it is not there yet."""
    lasting = images.lasting()
    layers = [layer.digest for image in lasting for layer in image.layers]
    folder = cache() / f"store-{hashlib.sha256(''.join(layers).encode()).hexdigest()[:12]}"
    for image in lasting:
        _need(folder, image)
    return folder


def is_built() -> bool:
    """Whether there is any store."""
    return any(cache().glob("store-*/images"))


def with_this_hydra() -> tuple[Path, str]:
    """The store, and the name of the image with the Hydra that is imported here."""
    folder, image = build(), images.this_hydra()
    _need(folder, image)
    return folder, image.name


def lend(folder: Path, root: Path) -> None:
    """Makes a root folder for a containerd of its own, with the images of the store."""
    with _locked(folder):
        for database in _DATABASES:
            (root / database).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / "root" / database, root / database)
        for inside in (_CONTENT / "blobs" / "sha256", _SNAPSHOTS / "snapshots"):
            (root / inside).mkdir(parents=True)
            for path in (folder / "root" / inside).iterdir():
                (root / inside / path.name).symlink_to(path)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _need(folder: Path, image: Image) -> None:
    """Brings an image into the store unless it is there."""
    with _locked(folder):
        noted = folder / "images" / image.name.replace("/", "_")
        if noted.exists():
            return
        archive = folder / "archive.tar"
        known = [
            layer for layer in image.layers if (folder / "root" / _CONTENT / "blobs/sha256" / layer.digest).exists()
        ]
        images.write(image, archive, known)
        _import(folder, archive)
        archive.unlink()
        noted.parent.mkdir(exist_ok=True)
        noted.touch()


def _import(folder: Path, archive: Path) -> None:
    """Imports an archive with a containerd that runs for nothing else."""
    configuration, socket = folder / "containerd.toml", folder / "s"
    configuration.write_text(
        f'version = 2\nroot = "{folder / "root"}"\nstate = "{folder / "state"}"\n'
        f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\n  address = "{socket}"\n'
    )
    socket.unlink(missing_ok=True)
    log = folder / "containerd.log"
    with log.open("wb") as file:
        server = subprocess.Popen(
            ["containerd", "--config", configuration], stdout=file, stderr=file, env={**os.environ}
        )
    try:
        until(lambda: socket.exists() or server.poll() is not None, "containerd")
        ctr = ["ctr", "--address", str(socket), "--namespace", "k8s.io", "images", "import", str(archive)]
        done = subprocess.run(ctr, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise RigError(f"containerd does not take the image: {done.stderr.strip()}; see {log}")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)
        shutil.rmtree(folder / "state", ignore_errors=True)
