"""Named sets of fetch properties for subscribers; a scenario or ``--kafka-prop`` may change each of them.

``published`` is what the published experiments used: the libraries' defaults, many small fetches. ``tuned`` lets the
broker answer a fetch with at least 64 KiB or after 500 ms, which takes most of the CPU out of hundreds of consumers,
and keeps librdkafka's own queue full; it costs latency at low rates, and memory, so the queue shrinks with the clients.
"""

from __future__ import annotations

from typing import Final, Literal

FetchStyle = Literal["published", "tuned"]
QUEUES_KIB: Final = 4 * 1024 * 1024
"""Memory that the fetch queues of all subscribers together may take in the tuned style: 4 GiB."""
QUEUE_KIB: Final = (1024, 65_536)
"""The least and the most that one subscriber's queue gets (the default of librdkafka is the most)."""


def fetch_properties(style: FetchStyle, clients: int, implementation: str) -> dict[str, str]:
    """The properties of a style for ``clients`` subscribers of an implementation ("kafka-python", …)."""
    if style == "published":
        return {}
    common = {"fetch.min.bytes": "65536", "fetch.wait.max.ms": "500"}
    if implementation == "kafka-python":
        return common
    least, most = QUEUE_KIB
    queue_kib = max(least, min(most, QUEUES_KIB // max(1, clients)))
    return {
        **common,
        "fetch.queue.backoff.ms": "5",
        "queued.min.messages": "1000000",
        "queued.max.messages.kbytes": str(queue_kib),
    }
