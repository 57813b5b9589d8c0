"""Subscribers' reports of an epoch as batches, each made once and kept. Pure, time is passed in."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final

from hydra.model import SubscriberReport
from hydra.wire import report_batch
from hydra.wire.messages import Batch

BATCHED_WITHIN_NS: Final = 500_000_000
"""How long the first report waits for the others."""


@dataclass(frozen=True, slots=True)
class Made:
    """One batch: its first frame (but for ``seq``) and its second."""

    head: Batch
    payload: bytes


class Batching:
    """The reports of one epoch: those that wait for a batch, and the batches."""

    def __init__(self) -> None:
        self._waiting: dict[int, SubscriberReport] = {}
        self._bytes = 0
        self._due_ns = 0
        self._made: dict[int, Made] = {}

    def add(self, epoch: int, client: int, report: SubscriberReport, cohort: Container[int], now_ns: int) -> list[Made]:
        """Takes a client's report, the first of which counts; what has to be sent now."""
        if client in self._made or client in self._waiting:
            return []
        size = report_batch.report_bytes(report)
        full = self.flush(epoch, cohort) if self._waiting and self._bytes + size > report_batch.BATCH_BYTES else []
        if not self._waiting:
            self._due_ns = now_ns + BATCHED_WITHIN_NS
        self._waiting[client] = report
        self._bytes += size
        return full + (self.flush(epoch, cohort) if self._bytes >= report_batch.BATCH_BYTES else [])

    def flush(self, epoch: int, cohort: Container[int]) -> list[Made]:
        """The batch of what waits; none if nothing does."""
        if not self._waiting:
            return []
        reports = sorted(self._waiting.items(), key=lambda one: one[0])
        columns, payload = report_batch.encode(reports, cohort)
        ids = [client for client, _ in reports]
        made = Made(Batch(ids=ids, seq=1, epoch=epoch, columns=columns), payload)
        self._made.update(dict.fromkeys(ids, made))
        self._waiting.clear()
        self._bytes = 0
        return [made]

    def next_ns(self) -> int | None:
        """When what waits has waited long enough; None when nothing waits."""
        return self._due_ns if self._waiting else None

    def of(self, clients: Iterable[int]) -> list[Made]:
        """The batches that hold these clients' reports, each once."""
        return list({id(made): made for client in clients if (made := self._made.get(client))}.values())

    def clear(self) -> None:
        """Forgets everything: another epoch has begun."""
        self._waiting.clear()
        self._bytes = 0
        self._made.clear()
