"""Detects a dead broker during a step: sends requests to the leaders of a topic's partitions every second.

A broker that is slow under load does not count as dead, as its host still accepts connections.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaException

from hydra.client.server_interface import may_listen
from hydra.kafkatest.nodes import host_and_port
from hydra.kafkatest.topics import Topics
from hydra.system.worker_thread import WorkerThread

EVERY_S: Final = 1.0
ANSWER_WITHIN_S: Final = 1.5
SILENT_AFTER_S: Final = 6.0
"""How long a dead broker is silent: longer than a new leader takes after an orderly shutdown, with replicas."""


class Silence:
    """When each leader became silent. Pure: the time is an argument.

    Arguments:
        now: the time of the beginning, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._began = now
        self._heard: dict[str, float] = {}
        self._silent_since: dict[str, float] = {}

    def note(self, answered: Mapping[str, bool], now: float) -> None:
        """Records which of the present leaders (``host:port``) answered; forgets brokers that lead no more."""
        self._heard = {who: now if here else self._heard.get(who, self._began) for who, here in answered.items()}
        # Replaced as a whole, as another thread reads it.
        self._silent_since = {who: self._heard[who] for who, here in answered.items() if not here}

    def silent_leaders(self, now: float, excused: str = "") -> str:
        """The leaders that have been silent for ``SILENT_AFTER_S``, except ``excused``, separated by commas."""
        silent = (who for who, since in self._silent_since.items() if now - since >= SILENT_AFTER_S and who != excused)
        return ", ".join(sorted(silent))


class BrokerMonitor:
    """Watches the leaders of a topic on a thread of its own, until it is closed.

    Arguments:
        topics: the topics of the run, with a connection to the cluster.
        topic: the topic whose leaders are watched.
    """

    def __init__(self, topics: Topics, topic: str) -> None:
        self._topics = topics
        self._topic = topic
        self._silence = Silence(time.monotonic())
        self._excused = ""
        self._closed = threading.Event()
        self._thread = WorkerThread()
        self._watching = self._thread.submit(self._run)

    def failure(self) -> str:
        """A message if a leader is dead, otherwise ""; returns at once. Raises the error of the watching thread."""
        if self._watching.done():
            self._watching.result()
        silent = self._silence.silent_leaders(time.monotonic(), self._excused)
        return f"the Kafka broker at {silent} does not answer" if silent else ""

    def excuse(self, address: str) -> None:
        """Stops reporting the broker at ``host:port``, which was killed on purpose."""
        self._excused = address

    def close(self) -> None:
        """Ends the watch; the thread ends soon afterwards."""
        self._closed.set()
        self._thread.close()

    def _run(self) -> None:
        leaders = frozenset(address.strip() for address in self._topics.bootstrap.split(","))
        while not self._closed.wait(EVERY_S):
            try:
                leaders = self._topics.leaders(self._topic, ANSWER_WITHIN_S)
                answered = dict.fromkeys(leaders, True)
            except (KafkaException, TimeoutError):
                answered = {leader: may_listen(*host_and_port(leader), ANSWER_WITHIN_S) for leader in leaders}
            self._silence.note(answered, time.monotonic())
