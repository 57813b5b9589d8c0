"""What became of every message, as sets of numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from tests.golden_vectors.common import MARK, MOST_CHARACTERS, MOST_MISSING, Case, Ranges, bitmap, ranges
from tests.golden_vectors.traffic import base, chosen, draw, shuffled

Run = tuple[int, int, int, int]
"""Epoch, publisher, first sequence, number of messages in a row."""
EPOCH: Final = 6
TRAFFIC: Final[Case] = {
    "seed": 1,
    "topics": 1,
    "topic_table": [],
    "topics_per_client": 0,
    "wildcard": False,
    "keys": 0,
    "key_table": [],
    "sizes": [],
    "size_table": [],
}
"""Of one topic, without keys and ranges of sizes."""


def ledger(
    publishers: Sequence[int],
    batches: Sequence[tuple[int, Sequence[Run]]],
    sent: Sequence[tuple[int, int, Ranges]],
    *,
    window_end_ns: int = 1000,
    member: bool = False,
    traffic: Case | None = None,
    client: int = 0,
) -> Case:
    """Batches read at some times, and the account against what was sent.

    With ``traffic`` (the map of ``configure``), the subscriber ``client`` expects the messages of its topics, others
    are extra, and the order counts within each key of a topic; ``hot`` are the messages of the tenth of topics with
    most traffic.
    """
    reported = TRAFFIC | (traffic or {})
    its_topics = set(shuffled(reported["seed"], client, reported["topics"], reported["topics_per_client"]))

    def topic(publisher: int, n: int) -> int:
        return chosen(draw(base(reported["seed"], publisher, 1), n), reported["topics"], reported["topic_table"])

    def key(publisher: int, n: int) -> tuple[int, int]:
        if not reported["keys"]:
            return 0, 0
        its = chosen(draw(base(reported["seed"], publisher, 2), n), reported["keys"], reported["key_table"])
        return topic(publisher, n), its

    arrived: dict[int, list[int]] = {p: [] for p in publishers}
    inside: dict[int, set[int]] = {p: set() for p in publishers}
    foreign = dict.fromkeys(publishers, 0)
    proven: set[int] = set()
    marked: set[int] = set()
    messages = stale = 0
    over = False
    for now_ns, runs in batches:
        over = over or now_ns > window_end_ns
        for epoch, publisher, first, count in runs:
            for n in range(first, first + count):
                if epoch == EPOCH and publisher in arrived and n < MARK and topic(publisher, n) not in its_topics:
                    foreign[publisher] += 1
                elif epoch == EPOCH and publisher in arrived and n < MARK:
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
    hot_expected = hot_missing = 0
    room = MOST_CHARACTERS
    for publisher, count, holes in sent:
        came = arrived.get(publisher, [])
        seen = set(came)
        own = [n for n in range(count) if topic(publisher, n) in its_topics]
        expected = set(own) - {n for a, b in holes for n in range(a, b + 1)}
        missing = expected - seen
        hot = {n for n in expected if topic(publisher, n) < -(-reported["topics"] // 10)}
        hot_expected += len(hot)
        hot_missing += len(hot - seen)
        behind = max(came, default=-1) + 1
        # Where what is missing before the last arrival and after it touch, they are two ranges all the same; a hole in
        # what is expected keeps them apart as well.
        gaps = ranges(missing, apart_at=behind)
        if its_topics != set(range(reported["topics"])):
            place = {n: i for i, n in enumerate(own)}
            gaps = [[own[a], own[b]] for a, b in ranges(place[n] for n in missing)]
        bits = bitmap(seen) if member and max(seen, default=0) < 8 * MOST_CHARACTERS else ""
        fits = member and len(bits) <= room and max(seen, default=0) < 8 * MOST_CHARACTERS
        room -= len(bits) if fits else 0
        highest: dict[tuple[int, int], int] = {}
        reordered = 0
        known: set[int] = set()
        for n in came:
            latest = highest.get(key(publisher, n), -1)
            reordered += (bool(reported["keys"]) or n not in known) and n < latest
            known.add(n)
            highest[key(publisher, n)] = max(latest, n)
        ends = ends and max(expected, default=-1) < behind
        account: Case = {"publisher": publisher, "received": len(expected & seen)}
        account |= {"in_window": len(expected & inside.get(publisher, set())), "missing": 0 if member else len(missing)}
        account |= {"missing_ranges": [] if member else gaps[:MOST_MISSING]}
        account |= {"truncated": not fits if member else len(gaps) > MOST_MISSING}
        account |= {"duplicates": len(came) - len(seen), "reordered": reordered, "extra": len(seen - expected)}
        account["extra"] += foreign.get(publisher, 0)
        ledgers.append(account | {"received_bits": bits if fits else ""})
    case = {
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
    if traffic is None:
        return case
    return case | {"traffic": reported, "client": client, "hot": {"expected": hot_expected, "missing": hot_missing}}


def mixed(seed: int, *, member: bool = False, traffic: Case | None = None, client: int = 0) -> Case:
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
    return ledger([0, 1], batches, sent, member=member, traffic=traffic, client=client)


SOME: Final[Case] = {"seed": 9, "topics": 12, "topics_per_client": 3}
HALF: Final[Case] = {"topics": 2, "topics_per_client": 1, "topic_table": [[2**31, 1], [0, 1]]}


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
        "some-topics-whole": ledger(
            [0, 3], [(1, [(e, 0, 0, 100), (e, 3, 0, 30)])], [(0, 100, []), (3, 30, [])], traffic=SOME, client=5
        ),
        "some-topics-nothing-came": ledger([0], [], [(0, 100, [[10, 29]])], traffic=SOME, client=6),
        "some-topics-late-and-not-all": ledger(
            [0], [(900, [(e, 0, 0, 40)]), (1001, [(e, 0, 60, 30)])], [(0, 120, [])], traffic=SOME, client=7
        ),
        "some-topics-more-ranges-than-are-listed": ledger([0], odd, [(0, 1200, [])], traffic=HALF, client=1),
        "some-topics-across-blocks": ledger(
            [0], [(1, [(e, 0, 65_400, 100), (e, 0, 65_600, 50)])], [(0, 65_700, [[65_536, 65_540]])], traffic=SOME
        ),
        "some-topics-none-of-them": ledger([0], [], [(0, 1, [])], traffic=SOME, client=2),
        "all-topics": ledger([0], [(1, [(e, 0, 0, 60), (e, 0, 70, 30)])], [(0, 200, [])], traffic={"topics": 20}),
        "keys-out-of-order": ledger(
            [0],
            [(1, [(e, 0, 10, 20), (e, 0, 0, 10), (e, 0, 25, 3), (e, 0, 30, 5)])],
            [(0, 40, [])],
            traffic={"keys": 4},
        ),
        **{f"mixed-topics-{seed}": mixed(seed, traffic=SOME, client=seed) for seed in range(5, 8)},
        "mixed-topics-and-keys": mixed(8, traffic=SOME | {"keys": 3, "topics_per_client": 0}, client=8),
        "mixed-keys-of-a-member": mixed(9, member=True, traffic={"keys": 5}, client=9),
    }
