"""The nodes of one Kafka cluster: where each listens, and what its settings say of the others. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """Where one node listens: ``port`` is for clients and the other brokers, ``controller_port`` for controllers."""

    host: str
    port: int
    controller_port: int

    @property
    def bootstrap(self) -> str:
        """Its address for clients."""
        return f"{self.host}:{self.port}"

    @property
    def endpoint(self) -> str:
        """Both addresses, as a broker tells them (docs/control-protocol.md)."""
        return f"{self.bootstrap},{self.host}:{self.controller_port}"


def parse(endpoint: str) -> Node:
    """The node of an endpoint.

    Raises:
        ValueError: it is not of the form host:port,host:port, with one host.
    """
    pairs = [address.rpartition(":") for address in endpoint.split(",")]
    if len(pairs) != 2 or pairs[0][0] != pairs[1][0] or not pairs[0][0]:
        raise ValueError(f"{endpoint!r} is not of the form host:port,host:port, with one host")
    return Node(pairs[0][0], int(pairs[0][2]), int(pairs[1][2]))


def bootstrap(nodes: Sequence[Node]) -> str:
    """The address of them all for clients."""
    return ",".join(node.bootstrap for node in nodes)


def settings(nodes: Sequence[Node], number: int) -> dict[str, str]:
    """What ``conf/kafka/server.properties`` leaves open, for one node.

    All nodes are alike, brokers and voters of the KRaft quorum: there is no first one that the others depend on.

    Args:
        nodes: the whole cluster.
        number: which of them it is, counted from 1; Kafka's ``node.id``.
    """
    mine = nodes[number - 1]
    return {
        "node": str(number),
        "host": mine.host,
        "port": str(mine.port),
        "controller_port": str(mine.controller_port),
        "voters": ",".join(f"{n}@{node.host}:{node.controller_port}" for n, node in enumerate(nodes, 1)),
    }
