"""A broker of our own is killed in the middle of a step."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

from confluent_kafka import KafkaException

from hydra.kafkatest.nodes import Node, parse, victim
from hydra.kafkatest.settings import KILL
from hydra.kafkatest.topics import Topics
from hydra.model import Scenario
from hydra.system import Servers
from hydra.system.worker_thread import WorkerThread

_ASK_FOR_S: Final = 2.0
LEADERS_MOVE_WITHIN_S: Final = 25.0
"""A dead broker's partitions have other leaders after some 10 s; on a busy machine that takes longer."""
_NOTICED: Final = {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "1000"}
"""How soon a dead broker is noticed: soon where one is killed, late where busy ones must not be fenced."""


def broker_settings(scenario: Scenario) -> dict[str, str]:
    """What brokers are told beside ``conf/kafka/server.properties``, where a scenario kills one of them."""
    kills = any(moment is not None for moment in scenario.values_of("kill_broker_at"))
    kills = kills or any(event.kind == KILL for event in scenario.events)
    return dict(_NOTICED) if kills else {}


class _Fault:
    """Something that is done to a topic's first partition once in a step, asked for by a thread of its own."""

    def __init__(self, at: float, topics: Topics, topic: str) -> None:
        self._at = at
        self._topics = topics
        self._topic = topic
        self._thread = WorkerThread()

    def close(self) -> None:
        """Ends the thread that asks."""
        self._thread.close()


class Kill(_Fault):
    """Kills the partition's leader.

    Arguments:
        at: the part of the window after which it is killed.
        topics, topic: whose leader it is.
        servers: the brokers.
        endpoints: theirs, in the order of their node ids.
    """

    def __init__(self, at: float, topics: Topics, topic: str, servers: Servers, endpoints: Sequence[str]) -> None:
        super().__init__(at, topics, topic)
        self.killed = ""
        """``host:port`` of the broker that was killed; "" until then."""
        self.due = False
        """Whether the moment has come."""
        self._servers = servers
        self._nodes: list[Node] = [parse(endpoint) for endpoint in endpoints]
        self._leader: Future[str] | None = None

    def look(self, elapsed_s: float, duration_s: float) -> str:
        """Asks who leads when the moment has come, and kills it when that is known; returns who was killed just now.

        Returns at once.
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
            return ""  # it is asked again
        self._servers.kill(self.killed, f"{elapsed_s:.1f} s into the window")
        self._thread.close()
        return self.killed


class Move(_Fault):
    """Moves the partition to other brokers.

    Arguments:
        at: the part of the window after which it is moved.
        topics, topic: whose partition it is.
        brokers: how many there are.
    """

    def __init__(self, at: float, topics: Topics, topic: str, brokers: int) -> None:
        super().__init__(at, topics, topic)
        self.moved = False
        """Whether the cluster has accepted it."""
        self._brokers = brokers
        self._asked: Future[list[int]] | None = None

    def look(self, elapsed_s: float, duration_s: float) -> None:
        """Asks for the move when its moment has come, and again where it was refused; returns at once."""
        if self.moved or elapsed_s < self._at * duration_s:
            return
        if self._asked is None:
            self._asked = self._thread.submit(lambda: self._topics.move(self._topic, 0, self._brokers, _ASK_FOR_S))
        elif self._asked.done():
            self._hear(self._asked)

    def end(self) -> bool:
        """Whether it was moved; waits for an answer that is still to come."""
        if self._asked is not None:
            self._hear(self._asked, 2 * _ASK_FOR_S)
        return self.moved

    def _hear(self, asked: Future[list[int]], within_s: float | None = None) -> None:
        self._asked = None
        with contextlib.suppress(KafkaException, TimeoutError):  # where the window lasts, it is asked for again
            asked.result(within_s)
            self.moved = True
