"""What brokers counted in each row, for experiments that look at the brokers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hydra.kafkatest.experiments.common import Row, is_measured
from hydra.system import Done

IN: Final = ("in_bytes_per_s", "replication_in_bytes_per_s")
"""Payload of record batches from producers, and from leaders."""
OUT: Final = ("out_bytes_per_s", "replication_out_bytes_per_s")
"""The same to consumers, and to followers."""
INTERFACE_IN: Final = ("interface_in_bytes_per_s",)
INTERFACE_OUT: Final = ("interface_out_bytes_per_s",)
"""Of a broker's network interface, where it has one of its own."""


def with_brokers(done: Sequence[Done]) -> Iterator[tuple[Done, Row, dict[str, Row]]]:
    """Every measured row with what each broker counted in its window."""
    for part in done:
        for index, row in enumerate(part.rows):
            if is_measured(row):
                yield part, row, dict(part.servers[index]) if index < len(part.servers) else {}


def of_broker(broker: Row, names: Sequence[str]) -> float | None:
    """The sum of these figures of a broker; None where it told none of them."""
    found = [float(value) for name in names if isinstance(value := broker.get(name), (int, float))]
    return sum(found) if found else None


def mean_of(brokers: dict[str, Row], names: Sequence[str]) -> float | None:
    """Its mean over brokers; None where no broker told."""
    found = [value for broker in brokers.values() if (value := of_broker(broker, names)) is not None]
    return sum(found) / len(found) if found else None
