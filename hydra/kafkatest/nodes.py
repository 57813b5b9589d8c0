"""The nodes of one Kafka cluster: their addresses, their settings, and the placement of partitions. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MOST_VOTERS: Final = 3
"""Three voters survive the death of one; more voters cost more than they help."""
INTERNAL_REPLICAS: Final = 3
"""Replicas of Kafka's internal topics, such as that of the groups' offsets."""
DEFAULT_PORT: Final = 9092
"""librdkafka's port for an address without one."""


@dataclass(frozen=True, slots=True)
class Node:
    """The addresses of one node.

    ``port`` is for clients and the other brokers, ``controller_port`` for controllers, and ``metrics_port`` for readers
    of its metrics, None if it has no such port.
    """

    host: str
    port: int
    controller_port: int
    metrics_port: int | None = None

    @property
    def bootstrap(self) -> str:
        """Its address for clients."""
        return f"{self.host}:{self.port}"

    @property
    def endpoint(self) -> str:
        """All its addresses, in the form that a broker sends (docs/control-protocol.md)."""
        metrics = f",{self.metrics}" if self.metrics else ""
        return f"{self.bootstrap},{self.host}:{self.controller_port}{metrics}"

    @property
    def metrics(self) -> str:
        """The node's address for readers of its metrics, "" if there is none."""
        return "" if self.metrics_port is None else f"{self.host}:{self.metrics_port}"


def parse(endpoint: str) -> Node:
    """The node of an endpoint.

    Raises:
        ValueError: it does not have the form host:port,host:port, with an optional third pair and the same host.
    """
    pairs = [address.rpartition(":") for address in endpoint.split(",")]
    if len(pairs) not in (2, 3) or len({host for host, _, _ in pairs}) > 1 or not pairs[0][0]:
        raise ValueError(f"{endpoint!r} is not of the form host:port,host:port, with one host")
    return Node(pairs[0][0], *(int(port) for _, _, port in pairs))


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of ``host`` or ``host:port``, without the brackets of an IPv6 address."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        host, port = address, str(DEFAULT_PORT)
    return host.strip("[]"), int(port)


def bootstrap(nodes: Sequence[Node]) -> str:
    """The addresses of all nodes for clients."""
    return ",".join(node.bootstrap for node in nodes)


def voters_of(brokers: int) -> int:
    """How many of a cluster's nodes vote in the KRaft quorum: an odd number, as an even one survives no more deaths."""
    return MOST_VOTERS if brokers >= MOST_VOTERS else 1


def sharing(nodes: Sequence[Node], number: int) -> int:
    """How many nodes of the cluster are on the same host as this node, itself included."""
    return sum(node.host == nodes[number - 1].host for node in nodes)


def placed(partitions: int, replicas: int, brokers: int) -> list[list[int]]:
    """The nodes of each partition, its leader first: evenly, and the last node leads the first partition.

    Unless all nodes are voters, that node is none, so its death (``kill_broker_at``) does not reduce the quorum.
    """
    return [[(first - 1 + n) % brokers + 1 for n in range(replicas)] for first in range(partitions)]


def victim(nodes: Sequence[Node], leader: str) -> str:
    """The node to kill for a leader (``host:port``): the leader, or the last node if the leader is the only voter."""
    only_voter = nodes[0].bootstrap if voters_of(len(nodes)) == 1 else ""
    return nodes[-1].bootstrap if leader == only_voter else leader


def settings(nodes: Sequence[Node], number: int, *, tls: bool = False) -> dict[str, str]:
    """The values of one node for the placeholders in ``conf/kafka/server.properties``.

    All nodes are brokers; the first :func:`voters_of` nodes are voters of the KRaft quorum as well.

    Args:
        nodes: the whole cluster.
        number: the node's number, counted from 1; Kafka's ``node.id``.
        tls: whether clients and brokers use TLS with a broker; controllers do not.
    """
    protocol = "SSL" if tls else "PLAINTEXT"
    own, voters = nodes[number - 1], nodes[: voters_of(len(nodes))]
    roles, listeners = ["broker"], [f"{protocol}://{own.bootstrap}"]
    if number <= len(voters):
        roles.append("controller")
        listeners.append(f"CONTROLLER://{own.host}:{own.controller_port}")
    return {
        "node": str(number),
        "roles": ",".join(roles),
        "protocol": protocol,
        "host": own.host,
        "port": str(own.port),
        "listeners": ",".join(listeners),
        "voters": ",".join(f"{n}@{node.host}:{node.controller_port}" for n, node in enumerate(voters, 1)),
        "internal_replicas": str(min(len(nodes), INTERNAL_REPLICAS)),
    }
