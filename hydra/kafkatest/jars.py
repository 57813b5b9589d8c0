"""The jars of Kafka's brokers, which Hydra fetches once with Maven into a cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hydra.config.user_folders import cache_folder
from hydra.errors import MissingDependencyError

JAVA_AT_LEAST: Final = 17
JAVA_PACKAGE: Final = "openjdk-17-jre-headless"
MAVEN_PACKAGE: Final = "maven"
JARS: Final = "jars"
CHECKSUMS: Final = "jars.sha256"
_LONGEST_ANSWER: Final = 300
"""How many characters of the text of a Java that does not start are repeated."""
MAVEN_TIMEOUT_S: Final = 600.0
_WITHOUT: Final = "or name your own cluster with --servers, which needs neither Java nor Maven"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that is new enough; ``version`` is its own name of its version, e.g. ``17.0.15``."""

    program: str
    version: str


@dataclass(frozen=True, slots=True)
class Jars:
    """All jars of Apache Kafka of one version; ``folder`` contains nothing else."""

    version: str
    folder: Path

    @property
    def classpath(self) -> str:
        """All jars, listed in a fixed order: with a wildcard Java would not use a class data archive."""
        return os.pathsep.join(str(p) for p in sorted(self.folder.glob("*.jar")) if p not in self.exporter)

    @property
    def exporter(self) -> list[Path]:
        """The Java agent that exports a broker's metrics; it contains its own libraries, so only brokers get it."""
        return list(self.folder.glob("jmx_prometheus_javaagent-*.jar"))


def conf_folder() -> Path:
    """The folder ``conf/kafka``: inside the installed package, or next to the package in a working copy.

    Raises:
        MissingDependencyError: neither folder exists.
    """
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "conf" / "kafka", package.parent / "conf" / "kafka"):
        if (candidate / "pom.xml").is_file():
            return candidate
    raise MissingDependencyError("conf/kafka/pom.xml is not installed", "install Hydra again from a complete copy")


def find_java() -> Java:
    """The ``java`` on PATH.

    Raises:
        MissingDependencyError: there is none, or it is older than 17; the remedy names the Debian package.
    """
    remedy = f"apt install {JAVA_PACKAGE}, {_WITHOUT}"
    program = shutil.which("java")
    if program is None:
        raise MissingDependencyError(
            f"a Kafka broker needs Java {JAVA_AT_LEAST} or newer, and no java is on PATH", remedy
        )
    answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=30)
    if answer.returncode != 0:
        text = " ".join((answer.stderr + answer.stdout).split()) or f"exit status {answer.returncode}"
        # Too little virtual memory may be the cause; the type lets the command name that limit.
        raise MissingDependencyError(
            f"{program} does not start: {text[:_LONGEST_ANSWER]}", f"repair it, or {_WITHOUT}"
        ) from subprocess.SubprocessError()
    found = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    version = found.group(1) if found else "unknown"
    major = re.match(r"(?:1\.)?(\d+)", version)
    if major is None or int(major.group(1)) < JAVA_AT_LEAST:
        raise MissingDependencyError(
            f"a Kafka broker needs Java {JAVA_AT_LEAST} or newer, and {program} is {version}", remedy
        )
    return Java(program, version)


def fetch(conf: Path | None = None, cache: Path | None = None) -> Jars:
    """The jars that ``conf/kafka/pom.xml`` names, from the cache; Maven fetches them first if the cache has none.

    On an agent they are in the archive's folder ``jars``. In every case the folder contains exactly the jars with the
    checksums of ``conf/kafka/jars.sha256``.

    If two runs call this at the same time, one fetches and the other waits.

    Raises:
        MissingDependencyError: Maven is missing, could not fetch the jars, or they differ from the list.
    """
    conf = conf or conf_folder()
    pom = conf / "pom.xml"
    text = pom.read_bytes()
    found = re.search(rb"<kafka\.version>([^<]+)</kafka\.version>", text)
    version = found.group(1).decode() if found else "unknown"
    if (conf / JARS).is_dir():
        _require_listed(conf / JARS, conf / CHECKSUMS, "make the agents' archive again")
        return Jars(version, conf / JARS)
    cache = cache or cache_folder()
    folder = cache / f"kafka-{version}-{hashlib.sha256(text).hexdigest()[:12]}" / JARS
    if not folder.is_dir():
        with locked(cache / f"{folder.parent.name}.lock"):
            # The previous holder of the lock may have fetched them.
            if not folder.is_dir():
                _fetch(pom, folder)
    _require_listed(folder, conf / CHECKSUMS, f"remove {folder}; Hydra fetches them again")
    return Jars(version, folder)


def _fetch(pom: Path, folder: Path) -> None:
    remedy = f"apt install {MAVEN_PACKAGE}, {_WITHOUT}"
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingDependencyError("the local Kafka broker's jars come with Maven, and no mvn is on PATH", remedy)
    with building(folder) as unfinished:
        command = [
            *(maven, "-q", "-B", "--strict-checksums", "-f", str(pom), "dependency:copy-dependencies"),
            *("-DincludeScope=runtime", f"-DoutputDirectory={unfinished}"),
        ]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MAVEN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise MissingDependencyError(
                f"Maven did not get the jars of {pom} within {MAVEN_TIMEOUT_S:.0f} s", "look at the network, try again"
            ) from None
        if answer.returncode != 0:
            lines = [line for line in (answer.stdout + answer.stderr).splitlines() if "ERROR" in line]
            raise MissingDependencyError(
                f"Maven could not get the jars of {pom}: {lines[0] if lines else f'exit {answer.returncode}'}",
                f"look at the network and Maven's settings, {_WITHOUT}",
            )
        _require_listed(unfinished, pom.with_name(CHECKSUMS), f"look at the repository in Maven's settings, {_WITHOUT}")


def _require_listed(folder: Path, checksums: Path, remedy: str) -> None:
    """Checks that the jars are exactly those of a list in the form of ``sha256sum``."""
    listed = {name: digest for digest, name in (line.split() for line in checksums.read_text().splitlines())}
    found = {}
    for path in folder.iterdir():
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    if wrong := sorted(name for name in listed | found if listed.get(name) != found.get(name)):
        more = f" (nor are {len(wrong) - 1} others)" if len(wrong) > 1 else ""
        raise MissingDependencyError(f"{wrong[0]} in {folder} is not as {checksums} lists it{more}", remedy)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits for and holds an exclusive lock on a file, across processes; it ends with the process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


@contextmanager
def building(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes ``folder`` if the body succeeds, and is removed otherwise.

    The caller must hold the folder's lock, as this removes what a killed process left.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for abandoned in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield unfinished
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
