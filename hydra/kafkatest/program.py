"""Prepares and starts one Kafka broker; see :class:`hydra.client.server_interface.ServerProgram`.

Formatted storage and an archive of classes let a broker start in 2 s instead of 6 s. Kafka and Java make both once for
their versions; they are kept next to the jars, or in the cache if that folder is read-only. A broker's data folder is a
copy of the formatted storage with its own ids. The archive contains the classes of a broker that has started once; a
Java that cannot use it starts without.
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from hydra.client.server_interface import accepts, free_ports
from hydra.client.supervised_process import SupervisedProcess
from hydra.client.tls import ServerTls
from hydra.client.transport import read_system
from hydra.config.user_folders import cache_folder
from hydra.errors import ServerError
from hydra.kafkatest.broker_memory import heap_options
from hydra.kafkatest.control_messages import KafkaJoin
from hydra.kafkatest.jars import Jars, Java, building, conf_folder, fetch, find_java, locked
from hydra.kafkatest.nodes import Node, parse, settings, sharing

KIND: Final = "kafka-broker"
FORMAT_TIMEOUT_S: Final = 60.0
TRAINING_S: Final = 60.0
ARCHIVE: Final = "classes.jsa"
DATA: Final = "data"
"""A broker's data folder in its working directory, the one in ``conf/kafka/server.properties``."""
PROPERTIES: Final = "server.properties"
LOGGING: Final = "log4j2.properties"
EXPORTER: Final = "exporter.yaml"
KEYSTORE: Final = "keystore.pem"
TRUSTSTORE: Final = "truststore.pem"


@dataclass(frozen=True, slots=True)
class Template:
    """Formatted storage (``storage``), and the archive of classes, None if Java could not make one."""

    storage: Path
    archive: Path | None


@dataclass(frozen=True, slots=True)
class Installation:
    """An installed Kafka: Java, the jars, and the folder of its settings, ``conf/kafka``."""

    java: Java
    jars: Jars
    conf: Path

    def properties(self, values: Mapping[str, str]) -> str:
        """``conf/kafka/server.properties`` with its ``${names}`` filled in."""
        return string.Template((self.conf / PROPERTIES).read_text()).substitute(values)

    def java_options(self) -> list[str]:
        """The options in ``conf/kafka/jvm.options``: one a line, ``#`` starts a comment."""
        lines = (line.strip() for line in (self.conf / "jvm.options").read_text().splitlines())
        return [line for line in lines if line and not line.startswith("#")]

    def java_command(self, extra: Sequence[str], main: str, *arguments: str) -> list[str]:
        """The command that runs one main class of Kafka in a folder that :meth:`configure` has prepared."""
        # Of two contradicting options Java takes the last: those of ``conf`` override Hydra's.
        return [
            self.java.program,
            *("-Xlog:disable", "-Xlog:all=error:stderr"),
            *extra,
            *self.java_options(),
            f"-Dlog4j2.configurationFile={LOGGING}",
            *("-cp", self.jars.classpath, main),
            *arguments,
        ]

    def configure(self, folder: Path, values: Mapping[str, str], more: Mapping[str, str] | None = None) -> None:
        """Writes the files that Java reads into its working directory, so no option needs a path.

        Args:
            folder: the working directory.
            values: the values of the placeholders in ``conf/kafka/server.properties``.
            more: settings that override those of that file.
        """
        # Of two lines with one name, Java takes the last.
        added = "".join(f"{k}={v}\n" for k, v in (more or {}).items())
        (folder / PROPERTIES).write_text(self.properties(values) + added)
        shutil.copyfile(self.conf / LOGGING, folder / LOGGING)

    def template(self) -> Template:
        """The template for this Kafka, Java and ``server.properties``, made if there is none.

        Raises:
            ServerError: Kafka's own tool could not format the storage.
        """
        text = (self.java.version + (self.conf / PROPERTIES).read_text() + "".join(self.java_options())).encode()
        installation = self.jars.folder.parent
        # An image contains the jars, and its root may be read-only.
        home = installation if os.access(installation, os.W_OK) else cache_folder() / f"kafka-{self.jars.version}"
        folder = home / f"template-{hashlib.sha256(text).hexdigest()[:12]}"
        if not folder.is_dir():
            with locked(folder.parent / f"{folder.name}.lock"):
                if not folder.is_dir():
                    with building(folder) as unfinished:
                        self._format(unfinished)
                        self._train(unfinished)
        archive = folder / ARCHIVE
        return Template(folder / DATA, archive if archive.is_file() else None)

    def _format(self, folder: Path) -> None:
        self.configure(folder, _alone())
        storage_tool = self.java_command(
            *(["-XX:TieredStopAtLevel=1"], "kafka.tools.StorageTool", "format"),
            *("--cluster-id", kafka_uuid(), "--config", PROPERTIES),
        )
        answer = subprocess.run(
            storage_tool, cwd=folder, capture_output=True, text=True, check=False, timeout=FORMAT_TIMEOUT_S
        )
        if answer.returncode != 0 or not (folder / DATA / "meta.properties").is_file():
            tail = (answer.stderr + answer.stdout).strip().splitlines()[-3:]
            what = f"Kafka's StorageTool could not format the storage: {' / '.join(tail)}"
            raise ServerError(what, "see conf/kafka/")

    def _train(self, folder: Path) -> None:
        """Starts a broker once and writes the archive of its classes when it ends; if it fails, there is none."""
        archive = folder / ARCHIVE
        with tempfile.TemporaryDirectory(prefix=".training-", dir=folder, ignore_cleanup_errors=True) as name:
            scratch, values = Path(name), _alone()
            copy_storage(folder / DATA, scratch / DATA, kafka_uuid())
            self.configure(scratch, values)
            archiving = [*heap_options(1), f"-XX:ArchiveClassesAtExit={archive}"]
            command = self.java_command(archiving, "kafka.Kafka", PROPERTIES)
            broker = SupervisedProcess(command, scratch, scratch / "log", grace_s=TRAINING_S)
            deadline = time.monotonic() + TRAINING_S
            try:
                while not accepts("127.0.0.1", int(values["port"])) and time.monotonic() < deadline:
                    if broker.wait_for_end(0.05):
                        return
            finally:
                # Java writes the archive when it ends.
                broker.stop()


class KafkaProgram:
    """Kafka in KRaft mode, with the jars of this machine.

    Arguments:
        conf: the folder with ``pom.xml``, ``server.properties`` and ``jvm.options``; None is the installed one.
        more: returns settings that override those of ``conf``, given the ports for clients and for controllers.
    """

    kind = KIND
    title = "Kafka broker"
    ports = 3

    def __init__(self, conf: Path | None = None, more: Callable[[int, int], Mapping[str, str]] | None = None) -> None:
        self._conf = conf
        self._more = more

    @cached_property
    def _kafka(self) -> Installation:
        conf = (self._conf or conf_folder()).resolve()
        return Installation(find_java(), fetch(conf), conf)

    @cached_property
    def _template(self) -> Template:
        return self._kafka.template()

    def find(self) -> Mapping[str, str]:
        """Finds Java and fetches the jars.

        Raises:
            MissingDependencyError: there is no Java that is new enough, or no jars.
        """
        return {"java": self._kafka.java.version, "kafka": self._kafka.jars.version}

    def prepare(self) -> Mapping[str, str]:
        """Finds Java, fetches the jars, and has Kafka format the storage with which brokers begin.

        Raises:
            MissingDependencyError: there is no Java that is new enough, or no jars.
            ServerError: Kafka's storage could not be formatted.
        """
        _ = self._template
        return self.find()

    def sources(self) -> Mapping[str, str]:
        """None: the jars are Hydra's, and Java is always that on PATH."""
        return {}

    def command(self, folder: Path, endpoint: str, join: Mapping[str, Any] | None) -> Sequence[str]:
        """Makes the node's storage and settings; returns the command that runs Java.

        Raises:
            OSError: a file cannot be written.
            ValueError: ``join`` is malformed.
        """
        kafka, template = self._kafka, self._template
        step = read_system(None if join is None else dict(join), KafkaJoin)
        own, nodes = parse(endpoint), [parse(each) for each in step.endpoints]
        if not (folder / DATA).exists():  # a broker that is started again keeps its messages
            copy_storage(template.storage, folder / DATA, step.cluster, step.node)
        more = {**step.settings, **(self._more(own.port, own.controller_port) if self._more else {})}
        if step.tls:
            more |= _with_tls(folder, step.tls, step.ca)
        kafka.configure(folder, settings(nodes, step.node, tls=step.tls is not None), more)
        options = heap_options(sharing(nodes, step.node))
        if template.archive:
            options.append(f"-XX:SharedArchiveFile={template.archive}")
        if own.metrics:
            shutil.copyfile(kafka.conf / EXPORTER, folder / EXPORTER)
            options += [f"-javaagent:{jar}={own.metrics}:{EXPORTER}" for jar in kafka.jars.exporter]
        return kafka.java_command(options, "kafka.Kafka", PROPERTIES)


def _with_tls(folder: Path, tls: ServerTls, ca: str) -> dict[str, str]:
    """Writes a broker's certificates to its folder, the key for this user only; returns the settings that name them."""
    (folder / KEYSTORE).touch(mode=0o600)
    (folder / KEYSTORE).write_text(tls.key + tls.certificate)
    (folder / TRUSTSTORE).write_text(ca)
    return {
        **{f"ssl.{store}.type": "PEM" for store in ("keystore", "truststore")},
        "ssl.keystore.location": KEYSTORE,
        "ssl.truststore.location": TRUSTSTORE,
    }


def copy_storage(storage: Path, data: Path, cluster: str, node: int = 1) -> None:
    """Makes the data folder of a cluster's node from formatted storage."""
    shutil.copytree(storage, data)
    properties = data / "meta.properties"
    text = properties.read_text()
    for name, value in {"cluster.id": cluster, "node.id": str(node), "directory.id": kafka_uuid()}.items():
        text = re.sub(rf"(?m)^{re.escape(name)}=.*$", f"{name}={value}", text)
    properties.write_text(text)


def kafka_uuid() -> str:
    """A random id in Kafka's form: 16 bytes, base64 for URLs, with no leading dash, which tools take for an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def _alone() -> dict[str, str]:
    """The values of the placeholders for a broker that is a cluster by itself."""
    return settings([Node("127.0.0.1", *free_ports("127.0.0.1", 2))], 1)
