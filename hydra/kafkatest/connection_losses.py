"""The connections to brokers that a client in Python lost while it used them.

A broker closes a connection that nothing uses (``connections.max.idle.ms``), and the libraries report such an end like
any other. So only a connection in use counts as lost: one with a request on its way, or used a moment before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError

from hydra.client.linux_process import local_limit_in

IN_USE_S: Final = 0.5
"""The longest time since the last use of a connection that counts as in use: no broker closes it as idle."""
_STANDS: Final = frozenset({"UP", "UPDATE", "REAUTH"})
"""librdkafka's states of a connection that stands."""
_IN_USE_US: Final = 250_000
"""The same for librdkafka's statistics, which a publisher gets every 250 ms."""


class ConnectionLosses:
    """The losses of a step.

    Attributes:
        limit: the limit of this host that the first error shows that shows one; "": none does.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begins a step."""
        self._count = 0
        self._why = self.limit = ""

    def add(self, losses: int) -> None:
        """Connections in use were lost."""
        self._count += losses

    def explain(self, text: str) -> None:
        """Takes the library's text for an error of a connection; the first one of the step counts."""
        self._why = self._why or text
        self.limit = self.limit or local_limit_in(text)

    def total(self) -> tuple[int, str]:
        """How many connections were lost, and why the first one."""
        return self._count, self._why if self._count else ""


class _Broker(msgspec.Struct):
    """One connection in librdkafka's statistics.

    Attributes:
        nodeid: the id of the broker; below 0 it is an address to begin with, or that of a coordinator.
        state: the library's word for what it can be used for.
        disconnects: how often the connection ended.
        tx: the requests sent.
        waitresp_cnt: requests on their way.
        txidle: the time since the last request, µs; -1: there was none.
    """

    nodeid: int = -1
    state: str = ""
    disconnects: int = 0
    tx: int = 0
    waitresp_cnt: int = 0
    txidle: int = -1

    def in_use(self) -> bool:
        """Whether it was in use when the library made these statistics, up to one pause before it ended."""
        return self.state in _STANDS and (self.waitresp_cnt > 0 or 0 <= self.txidle < _IN_USE_US)

    def has_ended(self, now: _Broker | None) -> bool:
        """Whether it has ended since, given its broker in the next statistics; None: the library has forgotten it."""
        if now is None or now.disconnects > self.disconnects:
            return True
        return now.state not in _STANDS or now.tx < self.tx  # or the library has forgotten it, and another one stands


class _Statistics(msgspec.Struct):
    brokers: dict[str, _Broker] = {}


class LibrdkafkaLosses(ConnectionLosses):
    """The losses of a client of confluent-kafka, from its statistics: how a connection was used before it ended.

    The library's errors alone do not show that. If no broker is left, it reports only that, and forgets all of them
    with the ends that it has counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.restart()

    def restart(self) -> None:
        """A new client of the library begins to count."""
        self._before: dict[int, _Broker] = {}

    def read(self, text: str) -> None:
        """Takes the next statistics of the library, and counts the connections that ended since the last ones."""
        # The ends of the others disconnect from no data.
        now = {
            broker.nodeid: broker
            for broker in msgspec.json.decode(text, type=_Statistics).brokers.values()
            if broker.nodeid >= 0
        }
        self.add(sum(before.in_use() and before.has_ended(now.get(node)) for node, before in self._before.items()))
        self._before = now

    def note(self, error: KafkaError) -> None:
        """Takes an error of the library."""
        if error.code() == KafkaError._TRANSPORT:
            self.explain(error.str())
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.add(sum(broker.in_use() for broker in self._before.values()))
            self._before = {}


class KafkaPythonLosses(ConnectionLosses):
    """The losses of a client of kafka-python, whose connections call it when they end."""

    def watch(self, manager: Any) -> None:
        """Watches all connections of a client, given by the library's object that opens them."""
        opened: Callable[..., Any] = manager.get_connection

        def watched(node: Any, *more: Any, **named: Any) -> Any:
            connection = opened(node, *more, **named)
            if "connection_lost" not in vars(connection) and not manager.cluster.is_bootstrap(node):
                connection.connection_lost = self._noticing(connection)
            return connection

        manager.get_connection = watched
        for node, connection in list(manager._conns.items()):
            if not manager.cluster.is_bootstrap(node):
                connection.connection_lost = self._noticing(connection)

    def _noticing(self, connection: Any) -> Callable[..., None]:
        ended: Callable[..., None] = connection.connection_lost

        def noticed(error: BaseException | None) -> None:
            # Without an error, this client has closed it. Without a transport, it never stood.
            transport = connection.transport
            if error is not None and transport is not None and connection.connected:
                unused_s = time.monotonic() - transport.last_activity
                if connection.in_flight_requests or unused_s < IN_USE_S:
                    self.explain(str(error).removeprefix(f"{type(error).__name__}: "))
                    self.add(1)
            ended(error)

        return noticed
