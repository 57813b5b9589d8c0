"""What makes the embedded broker start in two seconds instead of six: formatted storage and a class data archive.

Both are made once for a version of Kafka and of Java, by those themselves, and kept beside the jars, or in the cache
where nobody may write there. A broker's data folder starts as a copy of the formatted storage with identities of its
own. The archive holds the classes of a broker that came up once; a Java that cannot use it goes on without.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import string
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hydra.client.server_ports import accepts, free_ports
from hydra.client.supervised_process import Supervised
from hydra.config.file_locations import cache_folder
from hydra.errors import ServerError
from hydra.kafkatest.footprints import heap_options
from hydra.kafkatest.jars import Jars, Java, building, locked
from hydra.kafkatest.nodes import Node, settings

FORMAT_TIMEOUT_S: Final = 60.0
TRAINING_S: Final = 60.0
ARCHIVE: Final = "classes.jsa"
DATA: Final = "data"
"""A broker's data in its working directory, as ``conf/kafka/server.properties`` says."""
PROPERTIES: Final = "server.properties"
LOGGING: Final = "log4j2.properties"
EXPORTER: Final = "exporter.yaml"


@dataclass(frozen=True, slots=True)
class Template:
    """Formatted storage (``storage``), and the archive of classes, None where Java could not make one."""

    storage: Path
    archive: Path | None


def fill(conf: Path, values: Mapping[str, str]) -> str:
    """``conf/kafka/server.properties`` with its ``${names}`` filled in."""
    return string.Template((conf / PROPERTIES).read_text()).substitute(values)


def java_options(conf: Path) -> list[str]:
    """The options in ``conf/kafka/jvm.options``: one a line, ``#`` starts a comment."""
    lines = (line.strip() for line in (conf / "jvm.options").read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def java_command(java: Java, jars: Jars, conf: Path, extra: list[str], main: str, *arguments: str) -> list[str]:
    """The command that runs one main class of Kafka in a folder that :func:`furnish` has made ready."""
    # Of two options that contradict each other, Java takes the last: those of ``conf`` go over ours.
    return [
        java.program,
        *("-Xlog:disable", "-Xlog:all=error:stderr"),
        *extra,
        *java_options(conf),
        f"-Dlog4j2.configurationFile={LOGGING}",
        *("-cp", jars.classpath, main),
        *arguments,
    ]


def furnish(folder: Path, conf: Path, values: Mapping[str, str], more: Mapping[str, str] | None = None) -> None:
    """Writes what Java reads into its working directory, so that no path has to be told to it.

    Args:
        folder: the working directory.
        conf: where the files are that are filled in.
        values: what they leave open.
        more: settings that go over those of ``conf/kafka/server.properties``.
    """
    # Of two lines with one name, Java takes the last.
    (folder / PROPERTIES).write_text(fill(conf, values) + "".join(f"{k}={v}\n" for k, v in (more or {}).items()))
    shutil.copyfile(conf / LOGGING, folder / LOGGING)


def server_command(
    java: Java,
    jars: Jars,
    conf: Path,
    template: Template,
    folder: Path,
    values: Mapping[str, str],
    more: Mapping[str, str] | None = None,
    *,
    sharing: int = 1,
    metrics: str = "",
) -> list[str]:
    """The command that runs a broker in ``folder``, where its settings are written; see :func:`furnish`.

    ``sharing``: how many brokers are on the machine, this one included. ``metrics``: where it tells its metrics,
    ``host:port``; "" nowhere.
    """
    furnish(folder, conf, values, more)
    extra = [*heap_options(sharing), *([f"-XX:SharedArchiveFile={template.archive}"] if template.archive else [])]
    if metrics:
        shutil.copyfile(conf / EXPORTER, folder / EXPORTER)
        extra += [f"-javaagent:{jar}={metrics}:{EXPORTER}" for jar in jars.exporter]
    return java_command(java, jars, conf, extra, "kafka.Kafka", PROPERTIES)


def prepare(java: Java, jars: Jars, conf: Path) -> Template:
    """The template for this Kafka, Java and ``server.properties``, made if it is not there yet.

    Raises:
        ServerError: Kafka's own tool could not format the storage.
    """
    text = (java.version + (conf / PROPERTIES).read_text() + "".join(java_options(conf))).encode()
    folder = _home(jars) / f"template-{hashlib.sha256(text).hexdigest()[:12]}"
    if not folder.is_dir():
        with locked(folder.parent / f"{folder.name}.lock"):
            if not folder.is_dir():
                with building(folder) as unfinished:
                    _format(java, jars, conf, unfinished)
                    _train(java, jars, conf, unfinished)
    archive = folder / ARCHIVE
    return Template(folder / DATA, archive if archive.is_file() else None)


def _home(jars: Jars) -> Path:
    """Where templates of these jars are kept."""
    beside = jars.folder.parent
    # An image brings the jars, and its root may be read-only.
    return beside if os.access(beside, os.W_OK) else cache_folder() / f"kafka-{jars.version}"


def copy_storage(storage: Path, data: Path, cluster: str, node: int = 1) -> None:
    """Makes the data folder of a cluster's node from formatted storage."""
    shutil.copytree(storage, data)
    properties = data / "meta.properties"
    text = properties.read_text()
    for name, value in {"cluster.id": cluster, "node.id": str(node), "directory.id": kafka_uuid()}.items():
        text = re.sub(rf"(?m)^{re.escape(name)}=.*$", f"{name}={value}", text)
    properties.write_text(text)


def kafka_uuid() -> str:
    """A random id in Kafka's form: 16 bytes, base64 for URLs, never a dash in front (tools take that for an option)."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def _values() -> dict[str, str]:
    return settings([Node("127.0.0.1", *free_ports("127.0.0.1", 2))], 1)


def _format(java: Java, jars: Jars, conf: Path, folder: Path) -> None:
    furnish(folder, conf, _values())
    command = java_command(
        *(java, jars, conf, ["-XX:TieredStopAtLevel=1"], "kafka.tools.StorageTool", "format"),
        *("--cluster-id", kafka_uuid(), "--config", PROPERTIES),
    )
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=FORMAT_TIMEOUT_S)
    if answer.returncode != 0 or not (folder / DATA / "meta.properties").is_file():
        tail = (answer.stderr + answer.stdout).strip().splitlines()[-3:]
        raise ServerError(f"Kafka's StorageTool could not format the storage: {' / '.join(tail)}", "see conf/kafka/")


def _train(java: Java, jars: Jars, conf: Path, folder: Path) -> None:
    """Lets a broker come up once and writes the archive of its classes when it ends; without success, no archive."""
    archive = folder / ARCHIVE
    with tempfile.TemporaryDirectory(prefix=".training-", dir=folder, ignore_cleanup_errors=True) as name:
        scratch = Path(name)
        copy_storage(folder / DATA, scratch / DATA, kafka_uuid())
        values = _values()
        furnish(scratch, conf, values)
        archiving = [*heap_options(1), f"-XX:ArchiveClassesAtExit={archive}"]
        command = java_command(java, jars, conf, archiving, "kafka.Kafka", PROPERTIES)
        broker = Supervised(command, scratch, scratch / "log", grace_s=TRAINING_S)
        deadline = time.monotonic() + TRAINING_S
        try:
            while not accepts("127.0.0.1", int(values["port"])) and time.monotonic() < deadline:
                if broker.wait_for_end(0.05):
                    return
        finally:
            # Java writes the archive on its way out.
            broker.stop()
