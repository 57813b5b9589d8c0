"""Loss over everyone who was asked, dead and silent ones included (DESIGN section 4). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass

from hydra.measure.rates import received, received_in_window
from hydra.model import PublisherReport, SequenceRange, SubscriberReport

BACKLOG_S = 0.1
"""Backlog at the end of the window that does not speak against a rate."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What a set of asked subscribers should have got, and got.

    Attributes:
        expected: messages, summed over all asked.
        received: of those, distinct ones received, drain included.
        in_window: of those, received by the end of the step.
        in_time: ``in_window`` and what came late within the backlog that is allowed.
    """

    expected: int
    received: int
    in_window: int
    in_time: int

    @property
    def loss_pct(self) -> float | None:
        """Client Loss[%]; None when nothing was expected."""
        return 100 * (self.expected - self.received) / self.expected if self.expected else None

    @property
    def loss_at_stop_pct(self) -> float | None:
        """What the original printed: everything not received when the step stopped."""
        return 100 * (self.expected - self.in_window) / self.expected if self.expected else None

    def passes(self, target: float) -> bool | None:
        """Whether loss ≤ target and received in the window ≥ (1 − target) · sent; None when nothing was expected."""
        if not self.expected:
            return None
        enough = (1 - target) * self.expected
        return self.received >= enough and self.in_time >= enough


@dataclass(frozen=True, slots=True)
class FailedClients:
    """Subscribers with loss, those that died, those that never answered; nobody is counted twice."""

    lossy: int
    dead: int
    silent: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.lossy + self.dead + self.silent


def _size_below(ranges: Iterable[SequenceRange], limit: int) -> int:
    """How many sequences below ``limit`` are in any of the ranges."""
    total = 0
    behind = 0
    for low, high in sorted(ranges):
        first, last = max(low, behind), min(high, limit - 1)
        if first <= last:
            total += last - first + 1
            behind = last + 1
    return total


def expected_messages(publishers: Iterable[PublisherReport]) -> int:
    """What every subscriber should get: sent, without what was never acknowledged."""
    return sum(p.sent - _size_below(p.unacknowledged, p.sent) for p in publishers)


def loss_of(
    asked: Collection[int], reports: Mapping[int, SubscriberReport], expected_each: int, window_s: float
) -> Loss:
    """The loss of the asked subscribers; one without a report received nothing."""
    allowed = expected_each * min(BACKLOG_S / window_s, 1.0)
    got = inside = in_time = 0
    for client in asked:
        report = reports.get(client)
        if report is None:
            continue
        all_of_it, at_stop = received(report), received_in_window(report)
        got += all_of_it
        inside += at_stop
        in_time += at_stop + min(all_of_it - at_stop, int(allowed))
    return Loss(expected_each * len(asked), got, inside, in_time)


def failed_clients(
    asked: Collection[int],
    reports: Mapping[int, SubscriberReport],
    dead: Set[int],
    silent: Set[int],
    expected_each: int,
) -> FailedClients:
    """Who failed, each under the gravest of the three; one that has no report and did not die is silent."""
    gone = {c for c in asked if c in dead}
    mute = {c for c in asked if c not in gone and (c in silent or c not in reports)}
    lossy = sum(1 for c in asked if c not in gone and c not in mute and received(reports[c]) < expected_each)
    return FailedClients(lossy, len(gone), len(mute))
