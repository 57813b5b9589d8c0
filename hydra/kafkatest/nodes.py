"""The nodes of one Kafka cluster: where each listens, and what its settings say of the others. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MOST_VOTERS: Final = 3
"""More voters cost more than they give: three survive the death of one."""
INTERNAL_REPLICAS: Final = 3
"""Of the topics that Kafka keeps for itself, such as the groups' offsets."""


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


def voters_of(brokers: int) -> int:
    """How many of a cluster's nodes vote in the KRaft quorum: an odd number, as an even one survives no more deaths."""
    return MOST_VOTERS if brokers >= MOST_VOTERS else 1


def sharing(nodes: Sequence[Node], number: int) -> int:
    """How many nodes of the cluster are on this one's host, itself included."""
    return sum(node.host == nodes[number - 1].host for node in nodes)


def placed(partitions: int, replicas: int, brokers: int) -> list[list[int]]:
    """On which nodes each partition is, its leader first: evenly, and the first one leads on the last node.

    That node is no voter where there are others: who kills it (``kill_broker_at``) leaves the quorum whole.
    """
    return [[(first - 1 + n) % brokers + 1 for n in range(replicas)] for first in range(partitions)]


def victim(nodes: Sequence[Node], leader: str) -> str:
    """Which node dies where the leader (``host:port``) is to be killed: it, or the last one if only it can vote."""
    only_voter = nodes[0].bootstrap if voters_of(len(nodes)) == 1 else ""
    return nodes[-1].bootstrap if leader == only_voter else leader


def settings(nodes: Sequence[Node], number: int) -> dict[str, str]:
    """What ``conf/kafka/server.properties`` leaves open, for one node.

    All nodes are brokers; the first :func:`voters_of` them are voters of the KRaft quorum as well.

    Args:
        nodes: the whole cluster.
        number: which of them it is, counted from 1; Kafka's ``node.id``.
    """
    mine, voters = nodes[number - 1], nodes[: voters_of(len(nodes))]
    roles, listeners = ["broker"], [f"PLAINTEXT://{mine.bootstrap}"]
    if number <= len(voters):
        roles.append("controller")
        listeners.append(f"CONTROLLER://{mine.host}:{mine.controller_port}")
    return {
        "node": str(number),
        "roles": ",".join(roles),
        "host": mine.host,
        "port": str(mine.port),
        "listeners": ",".join(listeners),
        "voters": ",".join(f"{n}@{node.host}:{node.controller_port}" for n, node in enumerate(voters, 1)),
        "internal_replicas": str(min(len(nodes), INTERNAL_REPLICAS)),
    }
