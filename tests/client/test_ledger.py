"""The ledger against a naive model of sets, and its edges by table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.client import ledger as ledger_module
from hydra.client.ledger import Ledger
from hydra.client.message_topics import Headers, MessageTopics
from hydra.wire.data_message import DTYPE
from hydra.wire.messages import PROBE_EPOCH, PublisherTotal, Traffic

EPOCH = 7


def batch(*rows: tuple[int, int, int]) -> Headers:
    return np.array([(e, p, s, 0) for e, p, s in rows], DTYPE)


def run(first: int, last: int, publisher: int = 1, epoch: int = EPOCH) -> Headers:
    return batch(*[(epoch, publisher, s) for s in range(first, last + 1)])


@dataclass
class Naive:
    """A ledger as sets."""

    received: set[int] = field(default_factory=set)
    in_window: set[int] = field(default_factory=set)
    duplicates: int = 0
    reordered: int = 0

    def take(self, sequence: int, inside: bool) -> None:
        if sequence in self.received:
            self.duplicates += 1
            return
        if self.received and sequence < max(self.received):
            self.reordered += 1
        self.received.add(sequence)
        if inside:
            self.in_window.add(sequence)


@st.composite
def deliveries(draw: st.DrawFn) -> list[list[tuple[int, int, int]]]:
    """Batches of (epoch, publisher, sequence): runs that overlap, repeat, skip and interleave."""
    rows: list[tuple[int, int, int]] = []
    for _ in range(draw(st.integers(0, 12))):
        first = draw(st.integers(0, 120))
        epoch = draw(st.sampled_from([EPOCH] * 8 + [EPOCH - 1, 0]))
        publisher = draw(st.sampled_from([1, 1, 2, 3]))
        rows += [(epoch, publisher, s) for s in range(first, first + draw(st.integers(1, 40)))]
    if draw(st.booleans()) and rows:
        rows = draw(st.permutations(rows))
    batches: list[list[tuple[int, int, int]]] = []
    while rows:
        n = draw(st.integers(1, 60))
        batches.append(rows[:n])
        rows = rows[n:]
    return batches


def as_ranges(*publishers: int) -> Ledger:
    return Ledger(EPOCH, publishers)


def as_bytes(*publishers: int) -> Ledger:
    topics = MessageTopics(Traffic(topics=3), 0, publishers)
    return Ledger(EPOCH, publishers, topics, in_order=False)


@pytest.mark.parametrize("opened", [as_ranges, as_bytes])
@settings(max_examples=20)
@given(
    batches=deliveries(),
    sent=st.integers(0, 170),
    unacknowledged=st.lists(st.tuples(st.integers(0, 170), st.integers(0, 5)), max_size=4),
    late_from=st.integers(0, 30),
)
def test_a_ledger_equals_a_naive_model_of_sets(
    opened: Callable[..., Ledger],
    batches: list[list[tuple[int, int, int]]],
    sent: int,
    unacknowledged: list[tuple[int, int]],
    late_from: int,
) -> None:
    ledger = opened(1, 2)
    naive = {1: Naive(), 2: Naive()}
    stale = 0
    probes: dict[int, int] = {}
    for i, rows in enumerate(batches):
        inside = i < late_from
        own = ledger.record(batch(*rows), 100 if inside else 101, 100)
        kept = [(e, p, s) for e, p, s in rows if e == EPOCH and p in naive]
        assert [tuple(h)[:3] for h in own.tolist()] == kept
        for _, p, s in kept:
            naive[p].take(s, inside)
        proven = [(p, s) for e, p, s in rows if e == 0]
        for p, s in proven:
            probes[p] = max(s, probes.get(p, 0))
        stale += len(rows) - len(kept) - len(proven)
    ended = {s for low, length in unacknowledged for s in range(low, low + length + 1)}
    ranges = [(low, low + length) for low, length in unacknowledged]
    requests = [PublisherTotal(publisher=p, sent=sent, unacknowledged=ranges) for p in (1, 2)]
    expected = set(range(sent)) - ended
    for account in ledger.close(requests):
        model = naive[account.publisher]
        missing = expected - model.received
        assert account.received == len(expected & model.received)
        assert account.in_window == len(expected & model.in_window)
        assert account.missing == len(missing)
        assert {s for low, high in account.missing_ranges for s in range(low, high + 1)} == missing
        assert account.extra == len(model.received - expected)
        assert account.duplicates == model.duplicates
        assert account.reordered == model.reordered
        assert not account.truncated
    assert ledger.stale == stale
    assert ledger.probes == probes
    assert ledger.has_last(requests) == all(
        not expected or max(m.received, default=-1) >= max(expected) for m in naive.values()
    )


@pytest.mark.parametrize("size", [1, 3, ledger_module.SCALAR_LIMIT, ledger_module.SCALAR_LIMIT + 1, 100, 1000])
def test_every_batch_size_counts_a_whole_stream_exactly(size: int) -> None:
    ledger = as_ranges(1)
    for first in range(0, 2_000, size):
        ledger.record(run(first, min(first + size, 2_000) - 1), 0, 1)
    (account,) = ledger.close([PublisherTotal(publisher=1, sent=2_000)])
    assert (account.received, account.in_window, account.missing, account.missing_ranges) == (2_000, 2_000, 0, [])


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize(("epoch", "publisher", "sequence"), [(6, 1, 0), (EPOCH, 9, 0), (EPOCH, 1, 2**63)])
def test_strangers_are_stale(size: int, epoch: int, publisher: int, sequence: int) -> None:
    ledger = as_ranges(1)
    ledger.record(batch(*[(epoch, publisher, sequence + i) for i in range(size)]), 0, 1)
    assert (ledger.stale, ledger.messages) == (size, 0)


MARK = 2**63


@pytest.mark.parametrize(
    ("rows", "publishers", "marked"),
    [
        ([], (1,), False),
        ([(0, 1, MARK | EPOCH)], (1,), True),
        ([(0, 1, MARK | EPOCH)] * 100, (1,), True),
        ([(0, 1, MARK | EPOCH)], (1, 2), False),
        ([(0, 1, MARK | EPOCH), (0, 2, MARK | EPOCH)], (1, 2), True),
        ([(0, 1, MARK | (EPOCH - 1)), (0, 1, MARK | (EPOCH + 1)), (0, 1, MARK)], (1,), False),
        ([(0, 1, EPOCH), (EPOCH, 1, MARK | EPOCH)], (1,), False),
        ([(0, 3, MARK | EPOCH)], (3,), False),
        ([(0, 1, MARK | EPOCH)], (), False),
    ],
)
def test_only_end_markers_of_this_epoch_from_every_publisher_say_that_nothing_follows(
    rows: list[tuple[int, int, int]], publishers: tuple[int, ...], marked: bool
) -> None:
    ledger = as_ranges(1, 2)
    if rows:
        ledger.record(batch(*rows), 0, 1)
    assert ledger.marked([PublisherTotal(publisher=p, sent=10) for p in publishers]) is marked


def test_end_markers_are_no_data_and_no_probes() -> None:
    ledger = as_ranges(1)
    assert len(ledger.record(batch((0, 1, MARK | EPOCH), (0, 1, MARK | (EPOCH - 1))), 0, 1)) == 0
    assert (ledger.stale, ledger.messages, ledger.probes) == (0, 0, {})


def test_in_the_epoch_of_probes_everything_but_probes_is_stale() -> None:
    ledger = Ledger(PROBE_EPOCH, (1,))
    ledger.record(batch((0, 1, 3), (2, 1, 0)), 0, 1)
    assert (ledger.stale, ledger.probes) == (1, {1: 3})
