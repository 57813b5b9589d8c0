"""How an agent gets the program: one archive with Hydra and what its clients need, made here and served over HTTP.

The archive holds ``hydra-run`` and ``program.tar.gz``: a site-packages folder (wheels of this machine) and the native
clients if there are any. ``hydra-run`` unpacks that once for all groups of an agent, finds a Python of the same minor
version there, or says why it cannot start.
"""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import os
import platform
import re
import secrets
import sys
import tarfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Final

import hydra
from hydra.errors import ClusterError

LIBRARIES: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("msgspec", "numpy", "pyzmq"),
    "hydra.kafkatest.confluent": ("confluent-kafka", "typing-extensions"),
    "hydra.kafkatest.node": (),
    "hydra.kafkatest.kafka_python": ("kafka-python", "crc32c", "confluent-kafka", "typing-extensions"),
}
"""The distributions that every Python client imports, and those of single ones; a test runs them with these alone."""

RUNNER: Final = "hydra-run"
_LEFT_OUT: Final = re.compile(r"(^|/)(tests?|__pycache__|include|f2py|_pyinstaller)/|\.(pyc|pyi|pxd|h|a)$")
_GLIBC: Final = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_PIECE: Final = 1 << 18
_KEPT: Final = 3
"""Archives kept in the cache folder."""

_SCRIPT: Final = """\
#!/bin/sh
# Starts a group of Hydra clients in a Mesos sandbox, or says why it cannot: hydra-run python|PROGRAM ARGUMENT…
root=$(cd "$(dirname "$0")" && pwd) || exit 78
say() { printf 'hydra-run: %s\\n' "$*" >&2; }
if [ "$(uname -m)" != '@machine@' ]; then
    say "this agent is $(uname -m); the archive was built on @machine@: run hydra on a machine like the agents"
    exit 78
fi
if [ -n "${HYDRA_ARTIFACT:-}" ] && [ "$HYDRA_ARTIFACT" != '@digest@' ]; then
    say "this archive is @digest@, and the run needs $HYDRA_ARTIFACT: rebuild what --artifact names (hydra artifact)"
    exit 78
fi
program=$1
shift
if [ "$program" = python ]; then
    interpreter=
    for python in python@python@ python3 python; do
        if command -v "$python" >/dev/null 2>&1 &&
            "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (@major@, @minor@))' 2>/dev/null; then
            interpreter=$python
            break
        fi
    done
    if [ -z "$interpreter" ]; then
        found=$(command -v python3 >/dev/null 2>&1 && python3 --version 2>&1)
        say "this agent has no Python @python@, which the controller runs (python3 here: ${found:-none});" \\
            "install python@python@, or run hydra with the agents' Python"
        exit 78
    fi
else
    have=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/glibc //')
    oldest=$(printf '%s\\n%s\\n' '@glibc@' "$have" | sort -V | head -n 1)
    if [ "$oldest" != '@glibc@' ]; then
        say "this agent has glibc ${have:-of an unknown version}; the native clients need @glibc@ or newer"
        exit 78
    fi
fi

# All groups of an agent share one unpacked copy: a copy for each would cost its disk and its memory many times. It is
# made in a folder of this user's own, where programs may run; where that is not to be had, in the sandbox.
unpack() { mkdir -p "$1" && tar -xzf "$root/program.tar.gz" -C "$1"; }
shared=${TMPDIR:-/tmp}/hydra-$(id -u)
home=$shared/@digest@
share() {
    command -v flock >/dev/null 2>&1 || return 1
    mkdir -m 700 "$shared" 2>/dev/null
    [ -d "$shared" ] && [ ! -L "$shared" ] && [ -O "$shared" ] || return 1
    (
        flock -w 60 9 || exit 1
        [ -e "$home/complete" ] && touch "$home" && exit 0
        find "$shared" -mindepth 1 -maxdepth 1 -type d -mmin +1440 -exec rm -rf {} +
        rm -rf "$home"
        mkdir "$home" && printf '#!/bin/sh\\n' >"$home/probe" && chmod 700 "$home/probe" && "$home/probe" || exit 1
        unpack "$home" && touch "$home/complete"
    ) 9>"$shared/lock"
}
if ! share 2>/dev/null; then
    home=$root/program
    unpack "$home" || { say 'the archive cannot be unpacked here: is the disk full?'; exit 78; }
fi
rm -f "$root/program.tar.gz"

[ "$program" = python ] || exec "$home/bin/$program" "$@"
export PYTHONPATH="$home/site-packages" PYTHONNOUSERSITE=1 PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1
exec "$interpreter" "$@"
"""


@dataclass(frozen=True, slots=True)
class Artifact:
    """An archive for agents.

    Attributes:
        path: the file.
        name: what it is called in its URI: version, Python, machine and digest.
        digest: of its contents; tasks of a run refuse an archive of another one.
        sha256: of the file.
    """

    path: Path
    name: str
    digest: str
    sha256: str


def build(cache: Path, commands: Iterable[Sequence[str]], more: Mapping[str, Path] | None = None) -> Artifact:
    """The archive for this installation, made only if its contents have changed since it was made last.

    Args:
        cache: the folder for archives.
        commands: how groups are started here: ``python -m MODULE …``, or a native client by its path.
        more: further files, by their name in the package ``hydra``.

    Raises:
        ClusterError: something that belongs into it is not installed, or there is no room.
    """
    commands = list(commands)
    natives = sorted({Path(command[0]) for command in commands if command[0] != sys.executable})
    modules = sorted({command[2] for command in commands if command[0] == sys.executable})
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    files, digest = _contents(modules, natives, more or {})
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
            script = re.sub(r"@(\w+)@", lambda found: values[found[1]], _SCRIPT)
            part = cache / f".{name}.{os.getpid()}"
            _write(part, files, script)
            part.replace(path)
            _forget_old(cache)
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as e:
        raise ClusterError(f"the agents' archive cannot be made in {cache}: {e}", "set XDG_CACHE_HOME") from e
    return Artifact(path, name, digest, sha256)


def glibc_needed(programs: Iterable[Path]) -> tuple[int, int]:
    """The oldest glibc that all of these programs run on, by the versions of the symbols they name."""
    found = [(2, 0)]
    for program in programs:
        found += ((int(major), int(minor)) for major, minor in _GLIBC.findall(program.read_bytes()))
    return max(found)


def _contents(
    modules: Sequence[str], programs: Iterable[Path], more: Mapping[str, Path]
) -> tuple[dict[str, Path], str]:
    """The archive's files by their name in it, and a digest of what they are.

    Our own files count by content, libraries by version: two installations of the same make the same archive.
    """
    files: dict[str, Path] = {}
    digest = hashlib.sha256(_SCRIPT.encode())
    if modules:
        package = Path(hydra.__file__).parent
        for path in sorted(package.rglob("*.py")):
            inside = path.relative_to(package).as_posix()
            if not _LEFT_OUT.search(inside):
                files[f"site-packages/hydra/{inside}"] = path
                digest.update(f"\0{inside}\0".encode() + path.read_bytes())
        for name in dict.fromkeys(d for module in ("", *modules) for d in LIBRARIES.get(module, ())):
            files.update(_distribution(name))
            digest.update(f"\0{name}=={version(name)}".encode())
    for inside, path in sorted(more.items()):
        files[f"site-packages/hydra/{inside}"] = path
        with path.open("rb") as file:
            digest.update(f"\0{inside}\0".encode() + hashlib.file_digest(file, "sha256").digest())
    for path in programs:
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


def _write(path: Path, files: Mapping[str, Path], script: str) -> None:
    inner = path.with_name(f"{path.name}.program")
    with gzip.GzipFile(inner, "wb", compresslevel=6, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
        for name, source in sorted(files.items()):
            entry = _entry(
                name, source.stat().st_size, executable=name.startswith("bin/") or os.access(source, os.X_OK)
            )
            with source.open("rb") as file:
                tar.addfile(entry, file)
    with inner.open("rb") as file, tarfile.open(path, "w") as tar:
        tar.addfile(_entry("program.tar.gz", inner.stat().st_size, executable=False), file)
        tar.addfile(_entry(RUNNER, len(script.encode()), executable=True), io.BytesIO(script.encode()))
    inner.unlink()


def _entry(name: str, size: int, *, executable: bool) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o755 if executable else 0o644
    return entry


def _forget_old(cache: Path) -> None:
    archives = sorted(cache.glob("hydra-*.tar*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in archives[_KEPT:]:
        path.unlink(missing_ok=True)


# --- serving ---------------------------------------------------------------------------------------------------------


class ArtifactServer:
    """Serves one archive at a path that nobody can guess, in a thread of its own; everything else is not found.

    Attributes:
        url: where it is.
    """

    def __init__(self, artifact: Artifact, host: str) -> None:
        target = f"/{secrets.token_urlsafe(24)}/{artifact.name}"
        try:
            self._server = _Server((host, 0), _Handler, artifact, target)
        except OSError as e:
            raise ClusterError(
                f"the archive for agents cannot be served at {host}: {e.strerror}",
                "name an address of this machine with --advertise",
            ) from e
        self.url = f"http://{host}:{self._server.server_address[1]}{target}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="artifact", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._server.archive.close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[http.server.BaseHTTPRequestHandler],
        artifact: Artifact,
        target: str,
    ) -> None:
        self.artifact, self.target = artifact, target
        super().__init__(address, handler)
        # Held open: a later run may sweep the file out of the cache folder.
        self.archive = artifact.path.open("rb")
        self.size = os.fstat(self.archive.fileno()).st_size

    def handle_error(self, *_: object) -> None:
        """A fetcher that hangs up tells its own agent."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 60
    server_version, sys_version = "hydra", ""

    def do_GET(self) -> None:
        """The archive."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Its length: Mesos' fetcher asks for it before it reserves room in its cache."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        if not secrets.compare_digest(self.path.encode(), self.server.target.encode()):
            self.send_error(http.HTTPStatus.NOT_FOUND)
            return
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", "application/x-tar")
        self.send_header("Content-Length", str(self.server.size))
        self.send_header("ETag", f'"{self.server.artifact.sha256}"')
        self.end_headers()
        if body:
            for offset in range(0, self.server.size, _PIECE):
                # With an offset of its own: several agents read at a time.
                self.wfile.write(os.pread(self.server.archive.fileno(), _PIECE, offset))

    def log_message(self, *_: object) -> None:
        """The path is a secret, and the terminal is the progress line's."""


def rewritten(command: Sequence[str]) -> Iterator[str]:
    """A group's command as ``hydra-run`` takes it: this Python becomes the agent's, a native client the archive's."""
    program, *arguments = command
    yield "python" if program == sys.executable else Path(program).name
    yield from arguments
