"""Brokers started by Hydra, real ones of Apache Kafka: a cluster on any hosts, and a single local broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from hydra.client.server_interface import free_ports
from hydra.errors import ServerError
from hydra.kafkatest.control_messages import KafkaJoin
from hydra.kafkatest.metrics import ask, exporters
from hydra.kafkatest.nodes import bootstrap, parse
from hydra.kafkatest.program import KafkaProgram, kafka_uuid
from hydra.kafkatest.properties import trusting
from hydra.kafkatest.topics import Topics, membership
from hydra.system.local_server import LocalServer

if TYPE_CHECKING:
    from hydra.system.run_certificates import RunAuthority

_ASK_FOR_S: Final = 1.0
"""How long one request for the cluster's members may take."""
_WARM_UP_WITHIN_S: Final = 60.0
_WARM_UP_MESSAGES: Final = 20_000
_CHUNK: Final = 100
_COPIES: Final = 2
"""Replicas of each warm-up message: with two, every broker fetches from another one; more are not needed."""


class KafkaCluster:
    """Brokers, the first of which are voters of KRaft (``nodes.py``); see :class:`hydra.system.ServerCluster`.

    Arguments:
        settings: settings of all brokers; they override those of ``conf/kafka/server.properties``.
        authority: the CA of the brokers; None: they use no TLS.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, authority: RunAuthority | None = None) -> None:
        self._id = ""
        self._size = 0
        self._settings = dict(settings or {})
        self._authority = authority
        self._properties = trusting(authority.client) if authority else {}
        self._exporters: dict[str, str] = {}

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        """Makes a new cluster id; returns the ``join`` of each broker, with the id and all addresses."""
        self._id, self._size = kafka_uuid(), len(endpoints)
        self._exporters = exporters(endpoints)
        return [self._join(number, endpoints) for number in range(1, self._size + 1)]

    def _join(self, number: int, endpoints: Sequence[str]) -> dict[str, Any]:
        join = KafkaJoin(cluster=self._id, node=number, endpoints=list(endpoints), settings=self._settings)
        if self._authority:
            tls = self._authority.server(endpoints[number - 1])
            join = msgspec.structs.replace(join, tls=tls, ca=self._authority.client.ca)
        message: dict[str, Any] = msgspec.to_builtins(join)
        return message

    def address(self, endpoints: Sequence[str]) -> str:
        """``host:port`` of every broker, separated by commas."""
        return bootstrap([parse(endpoint) for endpoint in endpoints])

    def up(self, address: str) -> bool:
        """Whether all brokers answer as one cluster; the id excludes a foreign broker on one of the ports."""
        return membership(address, _ASK_FOR_S, self._properties) == (self._id, self._size)

    def warm_up(self, address: str) -> None:
        """Sends messages through every broker until Java has compiled its code."""
        _warm_up(address, _WARM_UP_WITHIN_S, self._size, self._properties)
        # The first answer of an exporter takes much longer than later ones.
        ask(self._exporters)


class LocalBroker(LocalServer):
    """One Kafka broker in KRaft mode that its owner starts and stops; its data is deleted when it stops.

    Arguments:
        folder, log, host, ports, warm: as for :class:`LocalServer`.
        program: the program that starts it; None is the installed Kafka.
    """

    def __init__(
        self,
        folder: Path,
        program: KafkaProgram | None = None,
        *,
        log: Path | None = None,
        host: str = "127.0.0.1",
        ports: Callable[[str, int], list[int]] = free_ports,
        warm: bool = True,
    ) -> None:
        super().__init__(program or KafkaProgram(), KafkaCluster(), folder, log=log, host=host, ports=ports, warm=warm)

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients; errors as for ``address``."""
        return self.address


def _warm_up(bootstrap: str, timeout_s: float, brokers: int, properties: Mapping[str, str]) -> None:
    """Sends and receives messages on a temporary topic with a leader on every broker, then deletes it.

    Java interprets the code of a new broker; after some thousands of messages it has compiled the code.

    Raises:
        ServerError: not all messages were received within ``timeout_s``.
    """
    deadline = time.monotonic() + timeout_s
    topics = Topics(bootstrap, properties, f"warmup-{uuid.uuid4().hex[:8]}")
    try:
        topic = topics.create("warmup", brokers, min(brokers, _COPIES))
        received = _round_trip({**properties, "bootstrap.servers": bootstrap}, topic, brokers, deadline)
    except KafkaException as e:
        raise ServerError(f"the warm-up of the broker at {bootstrap} failed: {e.args[0]}") from None
    finally:
        topics.close()
    if received < _WARM_UP_MESSAGES:
        raise ServerError(
            f"the broker at {bootstrap} returned {received} of {_WARM_UP_MESSAGES} warm-up messages in time"
        )


def _round_trip(common: Mapping[str, str], topic: str, partitions: int, deadline: float) -> int:
    producer = Producer({**common, "log_level": 0, "linger.ms": 0, "batch.num.messages": _CHUNK})
    consumer = Consumer(
        {
            **common,
            "log_level": 0,
            "group.id": "hydra-warmup",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    received = 0
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        for chunk in range(_WARM_UP_MESSAGES // _CHUNK):
            for _ in range(_CHUNK):
                producer.produce(topic, bytes(100), None, chunk % partitions, delivered)
            producer.poll(0)
            received += len(consumer.consume(_WARM_UP_MESSAGES, 0))
        producer.flush(max(0.0, deadline - time.monotonic()))
        while received < _WARM_UP_MESSAGES and not failures and time.monotonic() < deadline:
            received += len(consumer.consume(1, 0.1))
            received += len(consumer.consume(_WARM_UP_MESSAGES, 0))
    finally:
        consumer.close()
    if failures:
        raise KafkaException(failures[0])
    return received
