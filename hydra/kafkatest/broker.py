"""Brokers of our own, real ones of Apache Kafka: as one cluster, wherever they run, and one embedded by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from hydra.client.server_ports import free_ports
from hydra.kafkatest.control_messages import KafkaJoin
from hydra.kafkatest.metrics import ask, exporters
from hydra.kafkatest.nodes import bootstrap, parse
from hydra.kafkatest.program import KafkaProgram
from hydra.kafkatest.template import kafka_uuid
from hydra.kafkatest.topics import membership
from hydra.kafkatest.warmup import warm_up
from hydra.system import Waiting, wait_alone
from hydra.system.embedded_server import EmbeddedServer

_ASK_FOR_S: Final = 1.0
"""How long one question for the cluster's members may take."""
_WARM_UP_WITHIN_S: Final = 60.0


class KafkaCluster:
    """Brokers, the first ones of which are voters of KRaft (``nodes.py``); see :class:`hydra.system.ServerCluster`.

    Arguments:
        settings: of all brokers; they go over those of ``conf/kafka/server.properties``.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._id = ""
        self._size = 0
        self._settings = dict(settings or {})
        self._exporters: dict[str, str] = {}

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        """A cluster with a new id, told to each broker with all their addresses."""
        self._id, self._size = kafka_uuid(), len(endpoints)
        self._exporters = exporters(endpoints)
        return [
            msgspec.to_builtins(
                KafkaJoin(cluster=self._id, node=number, endpoints=list(endpoints), settings=self._settings)
            )
            for number in range(1, self._size + 1)
        ]

    def address(self, endpoints: Sequence[str]) -> str:
        """``host:port`` of every broker, with commas."""
        return bootstrap([parse(endpoint) for endpoint in endpoints])

    def up(self, address: str) -> bool:
        """Whether all brokers answer there as one; the id tells them from a stranger who was quicker to bind a port."""
        return membership(address, _ASK_FOR_S) == (self._id, self._size)

    def warm_up(self, address: str) -> None:
        """Messages through every broker; see ``warmup.py``."""
        warm_up(address, _WARM_UP_WITHIN_S, self._size)
        # The first answer of an exporter takes much longer than all others.
        ask(self._exporters)


class EmbeddedBroker(EmbeddedServer):
    """One Kafka in KRaft mode that lives exactly as long as its owner wants it; its data is thrown away with it.

    Arguments:
        conf, more: as for :class:`KafkaProgram`.
        settings: as for :class:`KafkaCluster`.
        folder, log, host, ports, warm, wait: as for :class:`EmbeddedServer`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        conf: Path | None = None,
        log: Path | None = None,
        host: str = "127.0.0.1",
        ports: Callable[[str, int], list[int]] = free_ports,
        warm: bool = True,
        wait: Waiting = wait_alone,
        more: Callable[[int, int], Mapping[str, str]] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        program = KafkaProgram(conf, more)
        super().__init__(program, KafkaCluster(settings), folder, log=log, host=host, ports=ports, warm=warm, wait=wait)

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients; errors as for ``address``."""
        return self.address
