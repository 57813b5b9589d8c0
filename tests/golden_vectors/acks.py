"""Acknowledgements, as sets of numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.golden_vectors.common import Case, ranges

Act = tuple[str, int, int]
"""``accept``, 0, count; or ``acknowledge`` or ``fail``, first, count: every partitions-th sequence from the first."""


def acks(partitions: int, acts: Sequence[Act]) -> Case:
    """Answers in any order; the first one to a sequence counts."""
    accepted = repeated = 0
    answers: dict[int, str] = {}
    for act, first, count in acts:
        if act == "accept":
            accepted += count
            continue
        for n in range(first, first + count * partitions, partitions):
            assert n < accepted
            repeated += n in answers
            answers.setdefault(n, act)
    good = {n for n, answer in answers.items() if answer == "acknowledge"}
    return {
        "partitions": partitions,
        "acts": [list(act) for act in acts],
        "acknowledged": len(good),
        "failed": len(answers) - len(good),
        "pending": accepted - len(answers),
        "repeated": repeated,
        "unacknowledged": ranges(set(range(accepted)) - good),
    }


def answered(seed: int, partitions: int) -> Case:
    """Answers at random."""
    dice = random.Random(seed)
    acts: list[Act] = [("accept", 0, 30)]
    accepted = 30
    for _ in range(60):
        act = dice.choice(["accept", "acknowledge", "acknowledge", "acknowledge", "fail"])
        first = dice.randrange(accepted)
        most = (accepted - 1 - first) // partitions + 1
        count = dice.randrange(1, 12) if act == "accept" else dice.randrange(1, min(most, 9) + 1)
        accepted += count if act == "accept" else 0
        acts.append((act, 0 if act == "accept" else first, count))
    return acks(partitions, acts)


def acknowledgements() -> dict[str, Case]:
    """By name."""
    return {
        "nothing-sent": acks(1, []),
        "in-order": acks(1, [("accept", 0, 100), ("acknowledge", 0, 40), ("acknowledge", 40, 60)]),
        "pending": acks(1, [("accept", 0, 100), ("acknowledge", 0, 40)]),
        "failed-in-the-middle": acks(
            1, [("accept", 0, 30), ("acknowledge", 0, 10), ("fail", 10, 5), ("acknowledge", 15, 15)]
        ),
        "the-first-answer-counts": acks(
            1, [("accept", 0, 10), ("fail", 2, 3), ("acknowledge", 0, 10), ("fail", 0, 10), ("acknowledge", 9, 1)]
        ),
        "partitions-one-after-the-other": acks(
            3, [("accept", 0, 10), ("acknowledge", 1, 3), ("acknowledge", 0, 2), ("fail", 2, 1), ("acknowledge", 5, 2)]
        ),
        **{f"random-{p}": answered(p, p) for p in (1, 2, 5)},
    }
