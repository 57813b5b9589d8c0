"""What became of every expected message, over everyone who was asked, dead and silent ones included. Pure.

A message that a subscriber should get came in the window, came late (while it drained), is known to wait in a server
(undrained), is lost, or is unknown: missing at a subscriber that had to stop draining before nothing could follow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Literal

from hydra.measure.rates import received, received_in_window
from hydra.model import LedgerCounts, PublisherReport, SequenceRange, SubscriberReport

BACKLOG_S: Final = 0.1
"""Backlog at the end of the window that does not speak against a rate."""

Doubt = Literal["least", "most"]
"""How many of the messages that may have been received are taken to be: as few or as many as can be."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What every subscriber should get.

    Attributes:
        each: messages: all that the servers, or where there are none the libraries, acknowledged; exact.
        joined: by publisher whose unacknowledged ranges were joined, how many messages of these ranges were
            acknowledged, and how many were not. A subscriber counts all that it gets of them as extra.
    """

    each: int
    joined: Mapping[int, tuple[int, int]]

    def doubtful(self, ledger: LedgerCounts, doubt: Doubt) -> int:
        """How many of a ledger's extra messages were acknowledged ones, at least or at most."""
        acknowledged, unacknowledged = self.joined.get(ledger.publisher, (0, 0))
        return (
            min(acknowledged, ledger.extra)
            if doubt == "most"
            else min(max(ledger.extra - unacknowledged, 0), acknowledged)
        )


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of the expected messages of one subscriber or several; all but ``in_time`` add up to ``expected``.

    Attributes:
        expected: messages, summed over all asked.
        in_window: of those, distinct ones received by the end of the step.
        late: received while draining.
        undrained: known to wait in a server when the drain ended.
        unknown: missing where the drain ended at its deadline: they may have been on their way.
        lost: never arrived.
        in_time: ``in_window`` and what came late within the backlog that is allowed.
    """

    expected: int = 0
    in_window: int = 0
    late: int = 0
    undrained: int = 0
    unknown: int = 0
    lost: int = 0
    in_time: int = 0

    @property
    def received(self) -> int:
        """Drain included."""
        return self.in_window + self.late

    def pct(self, messages: int) -> float | None:
        """A part of the expected messages in per cent; None when nothing was expected."""
        return 100 * messages / self.expected if self.expected else None

    @property
    def loss_pct(self) -> float | None:
        """Client Loss[%]."""
        return self.pct(self.lost)

    @property
    def loss_at_stop_pct(self) -> float | None:
        """What the original printed: everything not received when the step stopped."""
        return self.pct(self.expected - self.in_window)

    def passes(self, target: float) -> bool | None:
        """Whether received, and received in time, are at least (1 − target) · expected; None when that is 0.

        What is undrained or unknown was not received: it fails a rate, though it is no loss.
        """
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


def expected(publishers: Mapping[int, PublisherReport]) -> Expected:
    """What every subscriber should get, from the reports of all publishers."""
    joined = {}
    for publisher, report in publishers.items():
        if report.unacknowledged_joined:
            in_ranges = _size_below(report.unacknowledged, report.sent)
            unacknowledged = min(report.sent - report.acknowledged, in_ranges)
            joined[publisher] = (in_ranges - unacknowledged, unacknowledged)
    return Expected(sum(p.acknowledged for p in publishers.values()), joined)


def fate(
    report: SubscriberReport | None, due: Expected, window_s: float, last_word: int = 0, doubt: Doubt = "most"
) -> Fate:
    """What became of the messages that one subscriber should get.

    Args:
        report: its own; without one it has lost all after its last word.
        due: what it should get.
        window_s: length of the step's window.
        last_word: messages that it reported before it fell silent.
        doubt: what is assumed of messages that may have been received.
    """
    if report is None:
        got = min(last_word, due.each)
        return Fate(due.each, in_window=got, lost=due.each - got, in_time=got)
    more = sum(due.doubtful(ledger, doubt) for ledger in report.ledgers)
    in_window = received_in_window(report) + (more if doubt == "most" else 0)
    late = received(report) + more - in_window
    missing = max(due.each - in_window - late, 0)
    undrained = min(report.undrained, missing)
    rest = missing - undrained
    allowed = int(due.each * min(BACKLOG_S / window_s, 1.0))
    cut_off = report.drain == "deadline"
    return Fate(
        expected=due.each,
        in_window=in_window,
        late=late,
        undrained=undrained,
        unknown=rest if cut_off else 0,
        lost=0 if cut_off else rest,
        in_time=in_window + min(late, allowed),
    )


def total(fates: Iterable[Fate]) -> Fate:
    """The sum over several subscribers."""
    counts = map(attrgetter(*Fate.__slots__), fates)
    return Fate(*map(sum, zip(*counts, strict=True)))


def failed_clients(
    asked: Collection[int], fates: Mapping[int, Fate], reports: Collection[int], dead: Set[int], silent: Set[int]
) -> FailedClients:
    """Who failed, each under the gravest of the three; one that has no report and did not die is silent.

    Args:
        asked: the subscribers that count.
        fates: theirs; none where nobody knows what was to be expected.
        reports: those that reported.
        dead: those whose process ended.
        silent: those that did not answer.
    """
    gone = {c for c in asked if c in dead}
    mute = {c for c in asked if c not in gone and (c in silent or c not in reports)}
    lossy = sum(1 for c in asked if c not in gone and c not in mute and c in fates and fates[c].lost)
    return FailedClients(lossy, len(gone), len(mute))
