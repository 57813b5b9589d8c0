"""How one Kafka is prepared and started; see :class:`hydra.client.server_program.ServerProgram`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hydra.client.transport import read_system
from hydra.kafkatest.control_messages import KafkaJoin
from hydra.kafkatest.jars import Jars, Java, conf_folder, fetch, find_java
from hydra.kafkatest.nodes import parse, settings, sharing
from hydra.kafkatest.template import DATA, Template, copy_storage, prepare, server_command

KIND: Final = "kafka-broker"


class KafkaProgram:
    """Kafka in KRaft mode, with the jars of this machine.

    Arguments:
        conf: the folder with ``pom.xml``, ``server.properties`` and ``jvm.options``; None is the installed one.
        more: from its ports for clients and for controllers, settings that go over those of ``conf``.
    """

    kind = KIND
    title = "Kafka broker"
    ports = 3

    def __init__(self, conf: Path | None = None, more: Callable[[int, int], Mapping[str, str]] | None = None) -> None:
        self._conf = conf
        self._more = more
        self._found: tuple[Path, Java, Jars, Template] | None = None

    def prepare(self) -> Mapping[str, str]:
        """Finds Java, fetches the jars, and has Kafka format the storage that brokers begin with.

        Raises:
            MissingDependencyError: there is no Java that is new enough, or no jars.
            ServerError: Kafka's storage could not be formatted.
        """
        _, java, jars, _ = self._find()
        return {"java": java.version, "kafka": jars.version}

    def command(self, folder: Path, endpoint: str, join: Mapping[str, Any] | None) -> Sequence[str]:
        """Makes the node's storage and settings; returns the command that runs Java.

        Raises:
            OSError: there is no room.
            ValueError: ``join`` makes no sense.
        """
        conf, java, jars, template = self._find()
        asked = read_system(None if join is None else dict(join), KafkaJoin)
        mine = parse(endpoint)
        copy_storage(template.storage, folder / DATA, asked.cluster, asked.node)
        nodes = [parse(each) for each in asked.endpoints]
        more = {**asked.settings, **(self._more(mine.port, mine.controller_port) if self._more else {})}
        return server_command(
            *(java, jars, conf, template, folder, settings(nodes, asked.node), more),
            sharing=sharing(nodes, asked.node),
            metrics=mine.metrics,
        )

    def _find(self) -> tuple[Path, Java, Jars, Template]:
        if self._found is None:
            conf, java = (self._conf or conf_folder()).resolve(), find_java()
            jars = fetch(conf)
            self._found = conf, java, jars, prepare(java, jars, conf)
        return self._found
