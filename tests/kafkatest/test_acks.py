from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.client.ack_ledger import AckLedger


def answers(*sequences: int) -> npt.NDArray[np.uint64]:
    return np.array(sequences, np.uint64)


@pytest.mark.parametrize(
    ("sent", "acknowledged", "failed", "pending", "ranges"),
    [
        (0, [], [], 0, []),
        (5, [], [], 5, [(0, 4)]),
        (5, [0, 1, 2, 3, 4], [], 0, []),
        (5, [4, 3, 0], [], 2, [(1, 2)]),
        (5, [0, 1, 3], [2], 1, [(2, 2), (4, 4)]),
        (6, [1, 3, 5], [0], 2, [(0, 0), (2, 2), (4, 4)]),
    ],
)
def test_the_account(
    sent: int, acknowledged: list[int], failed: list[int], pending: int, ranges: list[tuple[int, int]]
) -> None:
    ledger = AckLedger()
    ledger.accept(sent)
    ledger.acknowledge(answers(*acknowledged))
    ledger.fail(answers(*failed))
    assert (ledger.acknowledged, ledger.failed, ledger.pending) == (len(acknowledged), len(failed), pending)
    assert ledger.unacknowledged() == ranges


def test_a_second_answer_changes_nothing_and_is_counted() -> None:
    ledger = AckLedger()
    ledger.accept(4)
    ledger.acknowledge(answers(0, 1))
    ledger.acknowledge(answers(1, 3, 3))
    ledger.fail(answers(0, 3))
    assert (ledger.acknowledged, ledger.failed, ledger.repeated) == (3, 0, 4)
    assert ledger.unacknowledged() == [(2, 2)]


def test_an_answer_to_what_was_never_sent_is_refused() -> None:
    ledger = AckLedger()
    ledger.accept(2)
    with pytest.raises(ValueError, match="sequence 2 of 2"):
        ledger.acknowledge(answers(0, 1, 2))


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 59), st.booleans()), max_size=100), st.integers(1, 40))
def test_it_agrees_with_a_dictionary(stream: list[tuple[int, bool]], chunk: int) -> None:
    ledger, truth = AckLedger(), dict[int, bool]()
    ledger.accept(60)
    for start in range(0, len(stream), chunk):
        part = stream[start : start + chunk]
        for take, reported in ((ledger.acknowledge, True), (ledger.fail, False)):
            of_these = [s for s, ok in part if ok is reported]
            take(answers(*of_these))
            for s in of_these:
                truth.setdefault(s, reported)
    assert ledger.acknowledged == sum(truth.values())
    assert ledger.failed == len(truth) - sum(truth.values())
    unacknowledged = {s for first, last in ledger.unacknowledged() for s in range(first, last + 1)}
    assert unacknowledged == {s for s in range(60) if not truth.get(s, False)}


def test_long_runs_from_three_partitions() -> None:
    ledger = AckLedger()
    ledger.accept(300_000)
    for first in range(0, 300_000, 3000):
        for partition in range(3):
            ledger.acknowledge(np.arange(first + partition, first + 3000, 3, dtype=np.int64))
    assert (ledger.acknowledged, ledger.pending, ledger.unacknowledged()) == (300_000, 0, [])
