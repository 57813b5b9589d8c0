"""What a producer made of its messages: how many a batch and a request, and how many bytes they took on the way."""

from __future__ import annotations

from collections.abc import Callable
from operator import sub
from typing import Any, Final, NamedTuple

import msgspec

LEAST_EVERY_MS: Final = 250
PARTITIONS_AT_ONCE: Final = 100
"""Statistics hold a paragraph for each partition: with more of them they are asked for less often."""


class ProducerCounts(NamedTuple):
    """Growing counts of one producer.

    Attributes:
        records, batches, requests: that were sent to brokers, those that were sent again included.
        payload_bytes: of the records.
        wire_bytes: of what was sent.
    """

    records: int = 0
    batches: int = 0
    requests: int = 0
    payload_bytes: int = 0
    wire_bytes: int = 0

    def since(self, earlier: ProducerCounts) -> ProducerCounts:
        """What was added to the earlier ones."""
        return ProducerCounts(*map(sub, self, earlier))

    def figures(self) -> dict[str, float]:
        """As a publisher reports them; empty where nothing was sent."""
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
    """librdkafka's, as its ``stats_cb``: only what is asked for is read.

    They come on their own, every ``statistics.interval.ms``; a request of librdkafka's holds one batch.
    """

    def __init__(self) -> None:
        self._text = ""

    def __call__(self, text: str) -> None:
        """Takes the next ones."""
        self._text = text

    def so_far(self) -> ProducerCounts:
        """The last ones that came."""
        if not self._text:
            return ProducerCounts()
        it = msgspec.json.decode(self._text, type=_Statistics)
        requests = sum(broker.req.get("Produce", 0) for broker in it.brokers.values())
        return ProducerCounts(it.txmsgs, requests, requests, it.txmsg_bytes, it.tx_bytes)

    def fresh(self, wait: Callable[[], Any], tries: int) -> ProducerCounts | None:
        """The next ones; None if ``wait``, which has to let the library deliver them, was called in vain."""
        self._text = ""
        for _ in range(tries):
            wait()
            if self._text:
                return self.so_far()
        return None


def statistics_every_ms(partitions: int) -> int:
    """How often librdkafka is to tell its statistics, for a topic with so many partitions."""
    return LEAST_EVERY_MS * max(1, partitions // PARTITIONS_AT_ONCE)


class Counting:
    """Takes the place of kafka-python's own sensors, which cost a tenth of the rate: counts whole batches.

    The library calls it on its sender's thread, before a request leaves; ``wire_bytes`` are those of the batches.
    """

    def __init__(self) -> None:
        self._sent = ProducerCounts()
        self.payload_bytes = 0
        """Of all messages that the library accepted; whoever hands them over adds them up."""

    def update_produce_request_metrics(self, batches_by_node: dict[Any, list[Any]]) -> None:
        """The library is about to send these batches, a request for each node."""
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

    def record_retries(self, topic: str, count: int) -> None:
        """Those are counted when they are sent."""

    def record_errors(self, topic: str, count: int) -> None:
        """The messages' own futures tell."""

    def so_far(self) -> ProducerCounts:
        """What was sent."""
        return self._sent._replace(payload_bytes=self.payload_bytes)
