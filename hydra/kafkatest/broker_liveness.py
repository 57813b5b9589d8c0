"""Notices that a broker is gone while a step goes on: asks the leaders of a topic's partitions again and again.

A broker that is slow, because its clients ask much of it, is none that is gone: its host still takes connections.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaException

from hydra.client.server_interface import accepts
from hydra.kafkatest.topics import Topics
from hydra.system.worker_thread import WorkerThread

EVERY_S: Final = 1.0
ANSWER_WITHIN_S: Final = 1.5
DEFAULT_PORT: Final = 9092
"""librdkafka's, where an address has none."""
GONE_AFTER_S: Final = 6.0
"""Longer than the leader's move takes where partitions have replicas and a broker is shut down in order."""


class Silence:
    """Since when each leader has been silent. Pure: the time is handed in.

    Arguments:
        now: when this begins, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._began = now
        self._heard: dict[str, float] = {}
        self._silent_since: dict[str, float] = {}

    def note(self, answered: Mapping[str, bool], now: float) -> None:
        """Takes which of the present leaders (``host:port``) answered; who leads no more is forgotten."""
        self._heard = {who: now if here else self._heard.get(who, self._began) for who, here in answered.items()}
        # Replaced as a whole: another thread asks meanwhile.
        self._silent_since = {who: self._heard[who] for who, here in answered.items() if not here}

    def gone(self, now: float, excused: str = "") -> str:
        """Leaders that have been silent for ``GONE_AFTER_S``, with commas and without one; "" if there are none."""
        silent = (who for who, since in self._silent_since.items() if now - since >= GONE_AFTER_S and who != excused)
        return ", ".join(sorted(silent))


class BrokerMonitor:
    """Watches the leaders of a topic on a thread of its own, until it is closed.

    Arguments:
        topics: asks the cluster.
        topic: whose leaders are watched.
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
        """That a leader is gone, or ""; returns at once. Raises what the watch itself failed with, if it did."""
        if self._watching.done():
            self._watching.result()
        gone = self._silence.gone(time.monotonic(), self._excused)
        return f"the Kafka broker at {gone} is gone" if gone else ""

    def excuse(self, address: str) -> None:
        """Nothing is said any more of the broker at ``host:port``: it was killed on purpose."""
        self._excused = address

    def close(self) -> None:
        """Ends the watch; the thread ends by itself soon."""
        self._closed.set()
        self._thread.close()

    def _run(self) -> None:
        leaders = frozenset(address.strip() for address in self._topics.bootstrap.split(","))
        while not self._closed.wait(EVERY_S):
            try:
                leaders = self._topics.leaders(self._topic, ANSWER_WITHIN_S)
                answered = dict.fromkeys(leaders, True)
            except (KafkaException, TimeoutError):
                answered = {leader: accepts(*host_and_port(leader), ANSWER_WITHIN_S) for leader in leaders}
            self._silence.note(answered, time.monotonic())


def host_and_port(address: str) -> tuple[str, int]:
    """Where to connect for ``host`` or ``host:port``; brackets around an IPv6 address are taken off."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        host, port = address, str(DEFAULT_PORT)
    return host.strip("[]"), int(port)
