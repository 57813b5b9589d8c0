"""Statistics of a producer: messages in a batch and in a request, and bytes sent."""

from __future__ import annotations

from collections.abc import Callable
from operator import sub
from typing import Any, Final, NamedTuple

import msgspec

LEAST_EVERY_MS: Final = 250
PARTITIONS_AT_ONCE: Final = 100
"""Statistics contain a part for each partition: with more partitions Hydra requests them less often."""


class ProducerCounts(NamedTuple):
    """Cumulative counts of one producer.

    Attributes:
        records, batches, requests: those sent to brokers, resends included.
        payload_bytes: the payload bytes of the records.
        wire_bytes: the bytes sent.
    """

    records: int = 0
    batches: int = 0
    requests: int = 0
    payload_bytes: int = 0
    wire_bytes: int = 0

    def since(self, earlier: ProducerCounts) -> ProducerCounts:
        """The difference from earlier counts."""
        return ProducerCounts(*map(sub, self, earlier))

    def figures(self) -> dict[str, float]:
        """The figures that a publisher reports; empty if nothing was sent."""
        if not (self.records and self.batches and self.requests and self.wire_bytes):
            return {}
        return {
            "records_per_batch": self.records / self.batches,
            "records_per_request": self.records / self.requests,
            "wire_bytes": self.wire_bytes,
            "compression_ratio": self.payload_bytes / self.wire_bytes,
        }


class _Broker(msgspec.Struct):
    req: dict[str, int] = {}


class _Statistics(msgspec.Struct):
    txmsgs: int = 0
    txmsg_bytes: int = 0
    tx_bytes: int = 0
    brokers: dict[str, _Broker] = {}


class Statistics:
    """librdkafka's statistics, as its ``stats_cb``; a text is parsed only when its counts are requested.

    librdkafka sends them every ``statistics.interval.ms``; each of its requests contains one batch.
    """

    def __init__(self) -> None:
        self._text = ""

    def __call__(self, text: str) -> None:
        """Takes the next statistics."""
        self._text = text

    def so_far(self) -> ProducerCounts:
        """The counts of the last statistics."""
        if not self._text:
            return ProducerCounts()
        statistics = msgspec.json.decode(self._text, type=_Statistics)
        requests = sum(broker.req.get("Produce", 0) for broker in statistics.brokers.values())
        return ProducerCounts(statistics.txmsgs, requests, requests, statistics.txmsg_bytes, statistics.tx_bytes)

    def fresh(self, wait: Callable[[], Any], tries: int) -> ProducerCounts | None:
        """The counts of the next statistics; None if they do not arrive in ``tries`` calls of ``wait``."""
        self._text = ""
        for _ in range(tries):
            wait()
            if self._text:
                return self.so_far()
        return None


def statistics_every_ms(partitions: int) -> int:
    """The pause in ms between librdkafka's statistics for a topic with ``partitions`` partitions."""
    return LEAST_EVERY_MS * max(1, partitions // PARTITIONS_AT_ONCE)


class Counting:
    """Replaces kafka-python's own sensors, which cost a tenth of the rate, and counts whole batches.

    The library calls it on its sender's thread, before it sends a request; ``wire_bytes`` are the bytes of the batches.
    """

    def __init__(self) -> None:
        self._sent = ProducerCounts()
        self.payload_bytes = 0
        """The bytes of all messages that the library accepted, summed up by the publisher."""
        self.throttled_ms = 0
        """The longest time by which a broker delayed an answer because of a quota."""

    def update_produce_request_metrics(self, batches_by_node: dict[Any, list[Any]]) -> None:
        """Counts batches that the library is about to send, with a request for each node."""
        records = batches = requests = wire_bytes = 0
        for node in batches_by_node.values():
            requests += bool(node)
            for batch in node:
                batches += 1
                records += batch.record_count
                wire_bytes += batch.records.size_in_bytes()
        self._sent = ProducerCounts(
            self._sent.records + records,
            self._sent.batches + batches,
            self._sent.requests + requests,
            wire_bytes=self._sent.wire_bytes + wire_bytes,
        )

    def noticing(self, handle: Callable[..., None]) -> Callable[..., None]:
        """The library's handler of an answer, which also notices how long a quota delayed the answer."""

        def handled(node: Any, sent_s: float, batches: Any, answer: Any) -> None:
            self.throttled_ms = max(self.throttled_ms, getattr(answer, "throttle_time_ms", 0))
            handle(node, sent_s, batches, answer)

        return handled

    def record_retries(self, topic: str, count: int) -> None:
        """Does nothing: resends are counted when they are sent."""

    def record_errors(self, topic: str, count: int) -> None:
        """Does nothing: the messages' futures report errors."""

    def so_far(self) -> ProducerCounts:
        """The counts of what was sent."""
        return self._sent._replace(payload_bytes=self.payload_bytes)
