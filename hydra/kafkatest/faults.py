"""Faults in a step: kills a broker started by Hydra, or moves a partition."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

from confluent_kafka import KafkaException

from hydra.kafkatest.nodes import Node, parse, victim
from hydra.kafkatest.settings import ends_a_broker
from hydra.kafkatest.topics import Topics
from hydra.model import RESTART, Scenario
from hydra.system import Servers
from hydra.system.worker_thread import WorkerThread

_ASK_FOR_S: Final = 2.0
LEADERS_MOVE_WITHIN_S: Final = 25.0
"""A dead broker's partitions have other leaders after about 10 s; on a busy machine it takes longer."""
_NOTICED: Final = {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "1000"}
"""Settings by which the cluster soon detects a dead broker, and lets one that was started again register; without a
kill, busy brokers must not be fenced."""


def broker_settings(scenario: Scenario) -> dict[str, str]:
    """Settings of brokers in addition to ``conf/kafka/server.properties`` if the scenario ends one of them."""
    restarts = any(event.kind == RESTART for event in scenario.events)
    return dict(_NOTICED) if restarts or ends_a_broker(scenario) else {}


class _Fault:
    """A fault of a topic's first partition, once in a step, requested by a thread of its own."""

    def __init__(self, at: float, topics: Topics, topic: str) -> None:
        self._at = at
        self._topics = topics
        self._topic = topic
        self._thread = WorkerThread()

    def close(self) -> None:
        """Ends the thread."""
        self._thread.close()


class Kill(_Fault):
    """Kills the partition's leader.

    Arguments:
        at: the part of the window after which the leader is killed.
        topics, topic: the topic, and a connection to its cluster.
        servers: the brokers.
        endpoints: the brokers' endpoints, in the order of their node ids.
    """

    def __init__(self, at: float, topics: Topics, topic: str, servers: Servers, endpoints: Sequence[str]) -> None:
        super().__init__(at, topics, topic)
        self.killed = ""
        """``host:port`` of the broker that was killed; "" until then."""
        self.due = False
        """Whether the time of the kill has passed."""
        self._servers = servers
        self._nodes: list[Node] = [parse(endpoint) for endpoint in endpoints]
        self._leader: Future[str] | None = None

    def look(self, elapsed_s: float, duration_s: float) -> str:
        """Requests the leader when its time has come, and kills it when the answer is there; returns at once.

        Returns:
            ``host:port`` of the broker that this call killed, otherwise "".
        """
        self.due = self.due or elapsed_s >= self._at * duration_s
        if not self.due or self.killed:
            return ""
        if self._leader is None:
            self._leader = self._thread.submit(lambda: self._topics.leader(self._topic, 0, _ASK_FOR_S))
        if not self._leader.done():
            return ""
        leader, self._leader = self._leader, None
        try:
            self.killed = victim(self._nodes, leader.result())
        except (KafkaException, TimeoutError):
            return ""  # the next call asks again
        self._servers.kill(self.killed, f"{elapsed_s:.1f} s into the window")
        self._thread.close()
        return self.killed


class Move(_Fault):
    """Moves the partition to other brokers.

    Arguments:
        at: the part of the window after which the partition is moved.
        topics, topic: the topic, and a connection to its cluster.
        brokers: the number of brokers.
    """

    def __init__(self, at: float, topics: Topics, topic: str, brokers: int) -> None:
        super().__init__(at, topics, topic)
        self.moved = False
        """Whether the cluster has accepted the move."""
        self._brokers = brokers
        self._moves: Future[list[int]] | None = None

    def look(self, elapsed_s: float, duration_s: float) -> None:
        """Requests the move when its time has come, and again if it was rejected; returns at once."""
        if self.moved or elapsed_s < self._at * duration_s:
            return
        if self._moves is None:
            self._moves = self._thread.submit(lambda: self._topics.move(self._topic, 0, self._brokers, _ASK_FOR_S))
        elif self._moves.done():
            self._hear(self._moves)

    def end(self) -> bool:
        """Whether the partition was moved; waits for an outstanding answer."""
        if self._moves is not None:
            self._hear(self._moves, 2 * _ASK_FOR_S)
        return self.moved

    def _hear(self, moves: Future[list[int]], within_s: float | None = None) -> None:
        self._moves = None
        with contextlib.suppress(KafkaException, TimeoutError):  # in the window, look() asks again
            moves.result(within_s)
            self.moved = True
