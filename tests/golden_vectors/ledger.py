"""What became of every message, as sets of numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from tests.golden_vectors.common import MARK, MOST_CHARACTERS, MOST_MISSING, Case, Ranges, bitmap, ranges

Run = tuple[int, int, int, int]
"""Epoch, publisher, first sequence, number of messages in a row."""
EPOCH: Final = 6


def ledger(
    publishers: Sequence[int],
    batches: Sequence[tuple[int, Sequence[Run]]],
    sent: Sequence[tuple[int, int, Ranges]],
    *,
    window_end_ns: int = 1000,
    member: bool = False,
) -> Case:
    """Batches read at some times, and the account against what was sent."""
    arrived: dict[int, list[int]] = {p: [] for p in publishers}
    inside: dict[int, set[int]] = {p: set() for p in publishers}
    proven: set[int] = set()
    marked: set[int] = set()
    messages = stale = 0
    over = False
    for now_ns, runs in batches:
        over = over or now_ns > window_end_ns
        for epoch, publisher, first, count in runs:
            for n in range(first, first + count):
                if epoch == EPOCH and publisher in arrived and n < MARK:
                    messages += 1
                    arrived[publisher].append(n)
                    if not over:
                        inside[publisher].add(n)
                elif epoch != 0:
                    stale += 1
                elif n < MARK:
                    proven |= {publisher} if n >= EPOCH else set()
                elif n == MARK + EPOCH:
                    marked.add(publisher)
    ledgers = []
    ends = True
    room = MOST_CHARACTERS
    for publisher, count, holes in sent:
        came = arrived.get(publisher, [])
        seen = set(came)
        expected = set(range(count)) - {n for a, b in holes for n in range(a, b + 1)}
        missing = expected - seen
        behind = max(came, default=-1) + 1
        # Where what is missing before the last arrival and after it touch, they are two ranges all the same; a hole in
        # what is expected keeps them apart as well.
        gaps = ranges(missing, apart_at=behind)
        bits = bitmap(seen) if member and max(seen, default=0) < 8 * MOST_CHARACTERS else ""
        fits = member and len(bits) <= room and max(seen, default=0) < 8 * MOST_CHARACTERS
        room -= len(bits) if fits else 0
        highest = -1
        reordered = 0
        known: set[int] = set()
        for n in came:
            reordered += n not in known and n < highest
            known.add(n)
            highest = max(highest, n)
        ends = ends and max(expected, default=-1) < behind
        account: Case = {"publisher": publisher, "received": len(expected & seen)}
        account |= {"in_window": len(expected & inside.get(publisher, set())), "missing": 0 if member else len(missing)}
        account |= {"missing_ranges": [] if member else gaps[:MOST_MISSING]}
        account |= {"truncated": not fits if member else len(gaps) > MOST_MISSING}
        account |= {"duplicates": len(came) - len(seen), "reordered": reordered, "extra": len(seen - expected)}
        ledgers.append(account | {"received_bits": bits if fits else ""})
    return {
        "epoch": EPOCH,
        "publishers": list(publishers),
        "window_end_ns": window_end_ns,
        "batches": [{"now_ns": now_ns, "runs": [list(run) for run in runs]} for now_ns, runs in batches],
        "sent": [{"publisher": p, "sent": n, "unacknowledged": holes} for p, n, holes in sent],
        "member": member,
        "messages": messages,
        "stale": stale,
        "proven": set(publishers) <= proven,
        "marked": bool(sent) and {p for p, _, _ in sent} <= marked & set(publishers),
        "has_last": ends,
        "ledgers": ledgers,
    }


def mixed(seed: int, *, member: bool = False) -> Case:
    """Two publishers in disorder, with duplicates, strangers and other epochs."""
    dice = random.Random(seed)
    batches: list[tuple[int, list[Run]]] = []
    for n in range(12):
        runs: list[Run] = []
        for _ in range(dice.randrange(1, 8)):
            epoch = dice.choice([EPOCH] * 12 + [EPOCH - 1, 0])
            publisher = dice.choice([0, 0, 0, 1, 1, 9])
            runs.append((epoch, publisher, dice.randrange(300), dice.choice([1, 1, 2, 3, 40])))
        batches.append((900 + 20 * n, runs))
    sent: list[tuple[int, int, Ranges]] = [(0, 310, [[5, 9], [100, 180]]), (1, 250, [])]
    return ledger([0, 1], batches, sent, member=member)


def ledgers() -> dict[str, Case]:
    """By name."""
    e = EPOCH
    odd = [(1, [(e, 0, n, 1)]) for n in range(1, 1200, 2)]
    third = [(1, [(e, 0, 3 * n, 1)]) for n in range(1100)]
    marks: list[Run] = [(0, 0, MARK + e, 1), (0, 1, MARK + e - 1, 1)]
    return {
        "whole-and-in-order": ledger([0], [(1, [(e, 0, 0, 60)]), (2, [(e, 0, 60, 40)])], [(0, 100, [])]),
        "nothing-came": ledger([0], [], [(0, 100, []), (5, 3, [])]),
        "nothing-was-sent": ledger([0], [], [(0, 0, [])]),
        "holes-and-duplicates": ledger(
            [0, 1],
            [(1, [(e, 0, 0, 10), (e, 0, 5, 1), (e, 0, 20, 30), (e, 1, 3, 5)]), (2, [(e, 0, 12, 3), (e, 0, 0, 2)])],
            [(0, 60, []), (1, 10, [])],
        ),
        "late": ledger(
            [0], [(1000, [(e, 0, 0, 10)]), (1001, [(e, 0, 20, 10)]), (999, [(e, 0, 10, 10)])], [(0, 30, [])]
        ),
        "strangers-and-other-epochs": ledger(
            [0], [(1, [(e - 1, 0, 0, 3), (e, 0, 0, 4), (e, 7, 0, 5), (e + 1, 0, 4, 2)])], [(0, 4, [])]
        ),
        "unacknowledged-are-extra": ledger(
            [0], [(1, [(e, 0, 0, 7), (e, 0, 9, 21), (e, 0, 31, 69)])], [(0, 100, [[8, 9], [40, 44]])]
        ),
        "beyond-what-was-sent": ledger([0], [(1, [(e, 0, 0, 12), (e, 0, 20, 1)])], [(0, 10, [])]),
        "touching-ranges": ledger([0], [(1, [(e, 0, 3, 2)])], [(0, 10, [])]),
        "more-ranges-than-are-listed": ledger([0], odd, [(0, 1200, [])]),
        "probes-prove": ledger([0, 1], [(1, [(0, 0, e, 1), (0, 1, e + 1, 1)])], [(0, 0, []), (1, 0, [])]),
        "probes-of-before-do-not": ledger([0, 1], [(1, [(0, 0, e - 1, 1), (0, 1, e, 1)])], [(0, 0, [])]),
        "marked-by-one": ledger([0, 1], [(1, [*marks, (e, 0, 0, 3)])], [(0, 5, [])]),
        "not-marked-by-both": ledger([0, 1], [(1, marks)], [(0, 5, []), (1, 5, [])]),
        "sequences-of-64-bits": ledger([0], [(1, [(e, 0, MARK, 2), (e, 0, MARK - 1, 1)])], [(0, 2, [])]),
        "member": ledger([0], [(1, [(e, 0, 0, 10), (e, 0, 12, 3), (e, 0, 4, 1)])], [(0, 100, [[13, 13]])], member=True),
        "member-of-whom-nothing-is-told": ledger([0], [], [(0, 100, [])], member=True),
        "member-with-every-third": ledger([0], third, [(0, 4000, [])], member=True),
        "member-of-bytes-to-the-end": ledger([0], [(1, [(e, 0, 7, 1), (e, 0, 15, 1)])], [(0, 100, [])], member=True),
        "member-with-more-than-fits": ledger(
            [0, 1], [(1, [(e, 0, 0, 3), (e, 0, 1_572_864, 1), (e, 1, 5, 2)])], [(0, 10, []), (1, 10, [])], member=True
        ),
        "member-with-more-than-fits-together": ledger(
            [0, 1, 2],
            [(1, [(e, 1, 0, 2), (e, 0, 6, 1), (e, 1, 1_572_863, 1), (e, 2, 7, 2)])],
            [(0, 10, []), (1, 10, []), (2, 10, [])],
            member=True,
        ),
        "member-far-beyond": ledger([0], [(1, [(e, 0, MARK - 1, 1)])], [(0, 10, [])], member=True),
        **{f"mixed-{seed}": mixed(seed) for seed in range(4)},
        "mixed-member": mixed(4, member=True),
    }
