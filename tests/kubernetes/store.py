"""containerd's store of images: filled once, and lent to every node of every instance.

What containerd has unpacked it only reads. So the store of a node is a copy of the small databases, with links to what
was unpacked: made in milliseconds, and thrown away with the node.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Final

from tests.kubernetes import contents, images
from tests.kubernetes.images import Image
from tests.kubernetes.places import RUNNING, cache, locked
from tests.kubernetes.processes import RigError, until
from tests.suite.waiting import LONG_S

_BLOBS: Final = Path("io.containerd.content.v1.content/blobs/sha256")
_OVERLAYS: Final = Path("io.containerd.snapshotter.v1.overlayfs")
_DATABASES: Final = (Path("io.containerd.metadata.v1.bolt/meta.db"), _OVERLAYS / "metadata.db")
_UNUSED_S: Final = {"base": 7 * 24 * 3600, "hydra": 24 * 3600}
"""When images are removed that no process uses any more: those of trees, and what took minutes to make."""


def build() -> Path:
    """The store, with the images that do not change with Hydra's own files; filled if it is not there yet."""
    fixed = images.fixed()
    folder = _folder(fixed)
    _need(folder, [*fixed, images.base()])
    return folder


def is_built() -> bool:
    """Whether the store is there, for the tree as it is now."""
    recipes = (contents.python(), contents.debian(), contents.dependencies())
    if not all(each.is_made for each in recipes):
        return False
    fixed = images.fixed()
    return all(_note(_folder(fixed) / "images", image).exists() for image in (*fixed, images.base()))


def with_this_hydra() -> tuple[Path, Image]:
    """The store, and the image with the Hydra that is imported here, which is in it."""
    folder, image = build(), images.this_hydra()
    _need(folder, [image])
    return folder, image


def lend(folder: Path, root: Path) -> None:
    """Makes a root folder for a containerd of its own, with the images of the store."""
    with locked(folder / "lock"):
        for database in _DATABASES:
            (root / database).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / "root" / database, root / database)
        for inside in (_BLOBS, _OVERLAYS / "snapshots"):
            (root / inside).mkdir(parents=True)
            for path in (folder / "root" / inside).iterdir():
                (root / inside / path.name).symlink_to(path)


def bring(image: Image, root: Path, socket: Path) -> None:
    """Imports an image into a containerd that runs, without the layers that it has."""
    known = [layer for layer in image.layers if (root / _BLOBS / layer.digest).exists()]
    with subprocess.Popen(_ctr(socket, "images", "import", "-"), stdin=PIPE, stdout=PIPE, stderr=STDOUT) as imports:
        assert imports.stdin is not None
        with contextlib.suppress(BrokenPipeError), imports.stdin as stream:
            images.write(image, stream, known)
        output = imports.stdout.read().decode() if imports.stdout else ""
    if imports.returncode != 0:
        raise RigError(f"containerd does not take {image.name}: {output.strip()}")


def _folder(fixed: Sequence[Image]) -> Path:
    layers = [layer.digest for image in fixed for layer in image.layers]
    return cache() / f"store-{hashlib.sha256(''.join(layers).encode()).hexdigest()[:12]}"


def _need(folder: Path, wanted: Sequence[Image]) -> None:
    """Brings images into the store unless they are there."""
    with locked(folder / "lock"):
        notes = folder / "images"
        notes.mkdir(exist_ok=True)
        missing = [image for image in wanted if not _note(notes, image).exists()]
        if missing:
            with _containerd(folder) as socket:
                for image in missing:
                    bring(image, folder / "root", socket)
                    _keep_once(folder, image)
                    _note(notes, image).touch()
                _forget(notes, socket)
        for image in wanted:
            _note(notes, image).touch()


def _forget(notes: Path, socket: Path) -> None:
    """Removes images, stores and layers that were not used for long; none while an instance may use them."""
    if any(each.is_dir() for each in RUNNING.glob("*")):
        return
    for note in (*notes.glob("*_base:*"), *notes.glob("*_hydra:*")):
        if _unused_s(note) > _UNUSED_S[note.name.split("_")[1].split(":")[0]]:
            name = note.name.replace("_", "/")
            subprocess.run(_ctr(socket, "images", "rm", "--sync", name), check=True, stdout=DEVNULL)
            note.unlink()
    for other in cache().glob("store-*"):
        if min(map(_unused_s, (other / "images").glob("*")), default=0) > _UNUSED_S["base"]:
            shutil.rmtree(other)
    for layer in (cache() / "layers").glob("*.tar"):
        # One that a store holds has a second name there.
        if layer.stat().st_nlink == 1 and _unused_s(layer) > _UNUSED_S["base"]:
            layer.with_suffix(".sha256").unlink(missing_ok=True)
            layer.unlink()


def _unused_s(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def _note(notes: Path, image: Image) -> Path:
    return notes / image.name.replace("/", "_")


def _keep_once(folder: Path, image: Image) -> None:
    """containerd holds the same bytes as the file of a layer: one of them is enough."""
    for layer in image.layers:
        held = folder / "root" / _BLOBS / layer.digest
        if not layer.path.samefile(held):
            linked = layer.path.with_suffix(".link")
            linked.unlink(missing_ok=True)
            linked.hardlink_to(held)
            linked.replace(layer.path)


@contextmanager
def _containerd(folder: Path) -> Iterator[Path]:
    """A containerd that runs for the store only; gives its socket."""
    with tempfile.TemporaryDirectory(prefix="rig-") as short, (folder / "containerd.log").open("wb") as log:
        socket, configuration = Path(short) / "socket", Path(short) / "containerd.toml"
        configuration.write_text(
            f'version = 2\nroot = "{folder / "root"}"\nstate = "{short}/state"\n'
            f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\n  address = "{socket}"\n'
            f'[plugins."io.containerd.internal.v1.opt"]\n  path = "{short}/opt"\n'
        )
        # A second one could not open the store: it must not outlive this process.
        command = ["setpriv", "--pdeathsig", "KILL", "containerd", "--config", str(configuration)]
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            until(lambda: socket.exists() or server.poll() is not None, "containerd")
            yield socket
        finally:
            server.terminate()
            server.wait(LONG_S)


def _ctr(socket: Path, *arguments: str) -> list[str]:
    return ["ctr", "--address", str(socket), "--namespace", "k8s.io", *arguments]
