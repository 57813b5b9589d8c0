"""The embedded broker: a real Apache Kafka on this machine that lives exactly as long as its owner wants it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hydra.client.server_ports import free_ports
from hydra.kafkatest.program import KafkaProgram
from hydra.kafkatest.server_cluster import KafkaCluster
from hydra.system import Waiting, wait_alone
from hydra.system.embedded_server import EmbeddedServer


class EmbeddedBroker(EmbeddedServer):
    """One Kafka in KRaft mode; its data is thrown away with it.

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
