"""The layers of the rig's images, as files in the cache: those that are made of the same are made once."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import hydra
from hydra.cluster.artifacts.bytecode import compiled, compiled_name
from hydra.config.places import conf_dir
from tests.kubernetes.locks import locked
from tests.kubernetes.places import TREE, cache, programs
from tests.kubernetes.processes import RigError, patiently

PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES: Final = f"usr/local/lib/python{PYTHON}/dist-packages"
_SUITES: Final = {"3.11": "bookworm", "3.13": "trixie"}
"""Debian's releases, by their Python."""
_SERVERS: Final = ("openjdk-17-jre-headless", "mosquitto", "nats-server")
_FORMAT: Final = 1
"""Counts what the keys do not show: another way of making layers."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A tar file, not compressed.

    Attributes:
        path: the file.
        digest: its SHA-256, as hexadecimal digits.
    """

    path: Path
    digest: str


def pause() -> Layer:
    """The program that holds a Pod."""
    return _of_files("pause", {"pause": programs() / "pause"})


def python() -> Layer:
    """Debian with Python and nothing else."""
    return _debian("python")


def debian() -> Layer:
    """Debian with Python, the servers of all systems, and the libraries of the native client."""
    return _debian("debian", *_SERVERS, *_libraries())


def dependencies() -> Layer:
    """The Python packages that Hydra needs, for Python of this minor version."""
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"].get("kubernetes", [])]

    def make(part: Path) -> None:
        with tempfile.TemporaryDirectory(dir=part.parent) as folder:
            options = ["--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--ignore-installed"]
            pip = [sys.executable, "-m", "pip", "install", *options, "--target", folder, *wanted]
            patiently("The images' Python packages", pip)
            shutil.rmtree(Path(folder, "bin"), ignore_errors=True)
            with tarfile.open(part, "w") as tar:
                Path(folder).chmod(0o755)
                tar.add(folder, PACKAGES, filter=_as_root)

    return _kept("dependencies", [PYTHON, *wanted, "755"], make)


def this_hydra() -> Layer:
    """The Hydra that is imported here: its modules compiled, its command and its native client on PATH."""
    package = Path(hydra.__file__).parent
    files: dict[str, Path | bytes] = {}
    for folder, inside in ((package, "hydra"), (conf_dir(), "hydra/conf")):
        for path in folder.rglob("*"):
            if path.is_file() and path.parent.name != "__pycache__":
                name = f"{PACKAGES}/{inside}/{path.relative_to(folder).as_posix()}"
                files[name] = path
                if path.suffix == ".py" and (code := compiled(path)):
                    files[compiled_name(name)] = code
    installed = distribution("hydra-scale")
    for name in ("METADATA", "entry_points.txt"):
        text = installed.read_text(name)
        if text is None:
            raise RigError(f"the installed hydra-scale has no {name}")
        files[f"{PACKAGES}/hydra_scale-{installed.version}.dist-info/{name}"] = text.encode()
    files["usr/local/bin/hydra"] = b"#!/usr/bin/python3\nimport sys\n\nfrom hydra.cli import main\n\nsys.exit(main())\n"
    if (client := package / "native" / "hydra-client").exists():
        files["usr/local/bin/hydra-client"] = client
    return _of_files("hydra", files)


def _libraries() -> list[str]:
    """Debian's packages with the libraries of the native client."""
    client = Path(hydra.__file__).parent / "native" / "hydra-client"
    if not client.exists():
        return []
    lines = subprocess.run(["ldd", client], capture_output=True, text=True, check=True).stdout.splitlines()
    paths = [str(Path(line.split()[2]).resolve()) for line in lines if "=> /" in line]
    owned = subprocess.run(["dpkg-query", "-S", *paths], capture_output=True, text=True, check=False).stdout
    return sorted({line.split(":")[0] for line in owned.splitlines()} - {"libc6"})


def _debian(name: str, *packages: str) -> Layer:
    suite = _SUITES.get(PYTHON)
    if suite is None:
        raise RigError(f"no release of Debian has Python {PYTHON}; run the tests with one of {', '.join(_SUITES)}")
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{each}/*" for each in ("doc", "locale", "man", "info")]
    # Java's package fails without the folder; the user is that of Containerfile.
    hooks = ["--setup-hook=mkdir -p $1/usr/share/man/man1",
             '--customize-hook=echo hydra:x:10001:10001::/tmp:/usr/sbin/nologin >>"$1/etc/passwd"',
             '--customize-hook=echo hydra:x:10001: >>"$1/etc/group"']  # fmt: skip

    def make(part: Path) -> None:
        include = ",".join(["python3", "ca-certificates", *packages])
        command = ["mmdebstrap", "--variant=minbase", "--format=tar", f"--include={include}"]
        patiently(f"The images' layer {name}", [*command, *left_out, *hooks, suite, str(part)])

    return _kept(name, [suite, *packages, *hooks], make)


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _of_files(name: str, files: Mapping[str, Path | bytes]) -> Layer:
    """A layer of programs (mode 755) and files by their path in it; the same files make the same layer."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for inside, content in sorted(files.items()):
            data = content if isinstance(content, bytes) else content.read_bytes()
            member = tarfile.TarInfo(inside)
            member.size = len(data)
            member.mode = 0o755 if not Path(inside).suffix else 0o644
            tar.addfile(member, io.BytesIO(data))
    data = buffer.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    path = _folder() / f"{name}-{digest[:12]}.tar"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(data)
        part.replace(path)
    return Layer(path, digest)


def _kept(name: str, made_of: list[str], make: Callable[[Path], None]) -> Layer:
    key = hashlib.sha256(json.dumps([_FORMAT, *made_of]).encode()).hexdigest()[:12]
    path = _folder() / f"{name}-{key}.tar"
    noted = path.with_suffix(".sha256")
    if noted.exists():
        return Layer(path, noted.read_text())
    with locked(path.with_suffix(".lock")):
        if noted.exists():
            return Layer(path, noted.read_text())
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        make(part)
        with part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        part.replace(path)
        noted.write_text(digest)
    return Layer(path, noted.read_text())


def _folder() -> Path:
    folder = cache() / "layers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
