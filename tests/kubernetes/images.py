"""Images of the rig as archives in the format of OCI."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Final

from tests.kubernetes import contents
from tests.kubernetes.layers import Layer

PAUSE: Final = "rig.local/pause:1"
PYTHON: Final = f"rig.local/python:{contents.PYTHON}"
_PATH: Final = "PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Image:
    """An image.

    Attributes:
        name: with its tag.
        layers: from the lowest one.
        settings: how its containers start: the "config" of an image.
    """

    name: str
    layers: Sequence[Layer]
    settings: Mapping[str, Any] = field(default_factory=dict)


def fixed() -> list[Image]:
    """Those that are the same for all trees."""
    return [
        Image(PAUSE, [contents.pause()], {"Entrypoint": ["/pause"]}),
        Image(PYTHON, [contents.python().layer()], {"Env": [_PATH], "Cmd": ["python3"]}),
    ]


def base() -> Image:
    """What is below Hydra: for all trees with the same dependencies."""
    layers = [contents.debian().layer(), contents.dependencies().layer()]
    return Image(f"rig.local/base:{_tag(layers)}", layers)


def this_hydra() -> Image:
    """The image with the Hydra that is imported here; its tag is a digest of its files."""
    top = contents.this_hydra()
    environment = [_PATH, "PYTHONDONTWRITEBYTECODE=1", "XDG_CACHE_HOME=/tmp/cache"]
    settings = {"Env": environment, "User": "10001:10001", "Entrypoint": ["hydra"], "Cmd": ["--help"]}
    layers = [*base().layers, top]
    return Image(f"rig.local/hydra:{_tag(layers)}", layers, settings)


def _tag(layers: Sequence[Layer]) -> str:
    return hashlib.sha256("".join(each.digest for each in layers).encode()).hexdigest()[:12]


def write(image: Image, stream: IO[bytes], without: Sequence[Layer] = ()) -> None:
    """Writes an archive; layers that the store holds already may be left out of it."""
    blobs: dict[str, bytes] = {}

    def blob(kind: str, content: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps(content).encode()
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return _descriptor(f"{kind}.v1+json", digest, len(data))

    runs_on = {"architecture": _MACHINES.get(platform.machine(), platform.machine()), "os": "linux"}
    files = {"type": "layers", "diff_ids": [f"sha256:{layer.digest}" for layer in image.layers]}
    configuration = {**runs_on, "config": dict(image.settings), "rootfs": files}
    layers = [_descriptor("layer.v1.tar", layer.digest, layer.path.stat().st_size) for layer in image.layers]
    manifest = {"schemaVersion": 2, "config": blob("config", configuration), "layers": layers}
    named = blob("manifest", manifest) | {"annotations": {"io.containerd.image.name": image.name}}
    with tarfile.open(fileobj=stream, mode="w|") as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        _add(tar, "index.json", json.dumps({"schemaVersion": 2, "manifests": [named]}).encode())
        for digest, data in blobs.items():
            _add(tar, f"blobs/sha256/{digest}", data)
        for layer in image.layers:
            if layer not in without:
                tar.add(layer.path, f"blobs/sha256/{layer.digest}")


def _descriptor(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": size}


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))
