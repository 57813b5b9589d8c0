"""What is in the layers of the rig's images."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import hydra
from hydra.config.file_locations import conf_dir
from hydra.engine.artifacts.archive import compiled, compiled_name
from tests.kubernetes.layers import Layer, Recipe, of_files
from tests.kubernetes.places import TREE, programs
from tests.kubernetes.processes import RigError, patiently

PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_PACKAGES: Final = f"usr/local/lib/python{PYTHON}/dist-packages"
_SUITES: Final = {"3.11": "bookworm", "3.13": "trixie"}
"""Debian's releases, by their Python."""
_SERVERS: Final = ("default-jre-headless", "mosquitto", "nats-server")


def pause() -> Layer:
    """The program that holds a Pod."""
    return of_files("pause", {"pause": programs() / "pause"})


def python() -> Recipe:
    """Debian with Python and nothing else."""
    return _debian("python")


def debian() -> Recipe:
    """Debian with Python, the servers of all systems, and the libraries of the native client."""
    return _debian("debian", *_SERVERS, *_libraries())


def dependencies() -> Recipe:
    """The Python packages that Hydra needs, for Python of this minor version."""
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"].get("kubernetes", [])]

    def make(part: Path) -> None:
        with tempfile.TemporaryDirectory(dir=part.parent) as folder:
            options = ["--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--ignore-installed"]
            pip = [sys.executable, "-m", "pip", "install", *options, "--target", folder, *wanted]
            patiently("The images' Python packages", pip)
            shutil.rmtree(Path(folder, "bin"), ignore_errors=True)
            Path(folder).chmod(0o755)
            with tarfile.open(part, "w") as tar:
                tar.add(folder, _PACKAGES, filter=_as_root)

    return Recipe("dependencies", [PYTHON, *wanted, "755"], make)


def this_hydra() -> Layer:
    """The Hydra that is imported here: its modules compiled, its command and its native client on PATH."""
    package = Path(hydra.__file__).parent
    files: dict[str, Path | bytes] = {}
    for folder, inside in ((package, "hydra"), (conf_dir(), "hydra/conf")):
        for path in folder.rglob("*"):
            if path.is_file() and path.parent.name != "__pycache__":
                name = f"{_PACKAGES}/{inside}/{path.relative_to(folder).as_posix()}"
                files[name] = path
                if path.suffix == ".py" and (code := compiled(path)):
                    files[compiled_name(name)] = code
    installed = distribution("hydra-scale")
    for name in ("METADATA", "entry_points.txt"):
        # In a tree from which a wheel was built, setuptools has left the same under another name.
        text = installed.read_text(name) or (installed.read_text("PKG-INFO") if name == "METADATA" else None)
        if text is None:
            raise RigError(f"the installed hydra-scale has no {name}")
        files[f"{_PACKAGES}/hydra_scale-{installed.version}.dist-info/{name}"] = text.encode()
    files["usr/local/bin/hydra"] = (
        b"#!/usr/bin/python3\nimport sys\n\nfrom hydra.cli.main import main\n\nsys.exit(main())\n"
    )
    if (client := package / "native" / "hydra-client").exists():
        files["usr/local/bin/hydra-client"] = client
    return of_files("hydra", files)


def _libraries() -> list[str]:
    """Debian's packages with the libraries of the native client."""
    client = Path(hydra.__file__).parent / "native" / "hydra-client"
    if not client.exists():
        return []
    lines = subprocess.run(["ldd", client], capture_output=True, text=True, check=True).stdout.splitlines()
    paths = [str(Path(line.split()[2]).resolve()) for line in lines if "=> /" in line]
    owned = subprocess.run(["dpkg-query", "-S", *paths], capture_output=True, text=True, check=False).stdout
    return sorted({line.split(":")[0] for line in owned.splitlines()} - {"libc6"})


def _debian(name: str, *packages: str) -> Recipe:
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

    return Recipe(name, [suite, *packages, *hooks], make)


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
